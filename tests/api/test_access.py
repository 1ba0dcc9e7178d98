"""Keys, hosts, origins; health, metrics and the documentation page."""

import httpx
import pytest


def test_without_a_key_only_liveness_answers(server):
    plain = httpx.Client(base_url=server.url, trust_env=False)
    assert plain.get("/v1/health").json() == {
        "live": True,
        "ready": True,
        "version": "0.1.0",
        "folders": None,
        "watcher": None,
        "queue": None,
        "git": None,
        "index": None,
        "problems": None,
        "alerts": [],
    }
    for method, path in [
        ("GET", "/v1/memory"),
        ("POST", "/v1/memory"),
        ("GET", "/v1/memory/mem_x"),
        ("PATCH", "/v1/memory/mem_x"),
        ("DELETE", "/v1/memory/mem_x"),
        ("POST", "/v1/memory/search"),
        ("POST", "/v1/users"),
        ("GET", "/v1/users/tom"),
        ("GET", "/v1/problems"),
        ("POST", "/v1/problems/confirm-deletions"),
        ("POST", "/v1/import"),
        ("POST", "/v1/rebuild"),
        ("GET", "/v1/memory/mem_x/history"),
        ("GET", "/v1/memory/mem_x/receipt"),
    ]:
        answer = plain.request(method, path, json={} if method in ("POST", "PATCH") else None)
        assert answer.status_code == 401, (method, path)
        assert answer.headers["www-authenticate"].startswith("Bearer")
    plain.close()


def test_every_route_of_the_documentation_but_health_needs_a_key(server):
    document = server.http.get("/schema/openapi.json").json()
    plain = httpx.Client(base_url=server.url, trust_env=False)
    for path, methods in document["paths"].items():
        for method in methods:
            if path != "/v1/health":
                answer = plain.request(method.upper(), path.replace("{", "").replace("}", ""), json={})
                assert answer.status_code == 401, (method, path)
    plain.close()


@pytest.mark.parametrize("value", ["", "Bearer", "Basic abc", "Bearer mgk_wrong", "Bearer \u00e9"])
def test_a_wrong_key_is_401(server, value):
    answer = httpx.get(server.url + "/v1/memory", headers={"Authorization": value.encode("latin-1")}, trust_env=False)
    assert answer.status_code == 401


def test_the_key_is_in_no_file_but_its_own(server):
    server.write("Something.", user_id="tom")
    key = server.key.encode("ascii")
    data = server.gateway.parts.settings.data_dir
    holders = [path.name for path in data.rglob("*") if path.is_file() and key in path.read_bytes()]
    assert holders == ["admin.key"]
    assert (data / "admin.key").stat().st_mode & 0o777 == 0o600
    assert data.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", ""])
def test_another_host_name_is_refused(server, host):
    assert server.http.get("/v1/health", headers={"Host": host}).status_code in (400, 403)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:1", "[::1]:80", "192.168.1.5:8765"])
def test_localhost_and_addresses_are_accepted(server, host):
    assert server.http.get("/v1/health", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1"])
def test_another_origin_is_refused(server, origin):
    answer = server.http.post("/v1/memory/search", json={"query": "x"}, headers={"Origin": origin})
    assert answer.status_code == 403
    assert "access-control-allow-origin" not in answer.headers


def test_the_documentation_page_needs_nothing_from_the_internet(server):
    page = server.http.get("/schema")
    assert page.status_code == 200
    assert "//" not in page.text.split("<body>")[0].replace("<!--", "")
    for asset in ("swagger_bundle.js", "swagger_style.css", "swagger_preset.js"):
        assert server.http.get(f"/schema-assets/{asset}").status_code == 200


def test_metrics_hold_sums_and_no_names(server):
    server.write("Secret content.", user_id="tom")
    text = httpx.get(server.url + "/metrics", trust_env=False).text
    assert 'memory_gateway_notes{state="notes"} 1.0' in text
    assert "tom" not in text
    assert "Secret" not in text


def test_an_unknown_route_and_a_wrong_method_are_problem_details(server):
    for answer in (server.http.get("/v1/nothing"), server.http.put("/v1/memory", json={})):
        assert answer.status_code in (404, 405)
        assert answer.headers["content-type"] == "application/problem+json"


def test_users_are_made_once_without_regard_to_case(server):
    made = server.http.post("/v1/users", json={"user_id": "Zoë", "preferences": {"language": "fr"}})
    assert made.status_code == 201
    assert made.json()["profile_namespace"] == "user/Zoë/profile"
    assert server.http.get("/v1/users/Zoë").json()["preferences"] == {"language": "fr"}
    assert server.http.post("/v1/users", json={"user_id": "zoË"}).status_code == 409
    assert server.http.get("/v1/users/nobody").status_code == 404
