"""What is a secret and what merely speaks of one. Values are put together here, so that no scanner takes this file."""

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.notes.note import parse
from gateway.notes.secrets import FoundSecret, find_secrets, held_for_secret, mask

MIXED = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0"
SECRETS = [
    ("password", "password = hunter2", "hunter2"),
    ("password", "DB_PASSWORD=swordfish", "swordfish"),
    ("password", "The wifi password is Sunday2024.", "Sunday2024"),
    ("password", '{"password": "letmein1"}', "letmein1"),
    ("password", "- **Password**: `s3cret!`", "s3cret!"),
    ("password", "passphrase: correct-horse-battery-staple", "correct-horse-battery-staple"),
    ("password", "密码：hunter2", "hunter2"),
    ("password", "数据库密码是 Abc@12345。", "Abc@12345"),
    ("password", "口令（旧）：abc12345", "abc12345"),
    ("password", "WiFi 密碼 abc12345", "abc12345"),
    ("password", "密码：“abc123”", "abc123"),
    ("password", "密码：ｈｕｎｔｅｒ２", "ｈｕｎｔｅｒ２"),
    ("password", "パスワード：hunter22", "hunter22"),
    ("api-key", "api_key: 9f8e7d6c5b4a", "9f8e7d6c5b4a"),
    ("api-key", 'client_secret = "abcDEF123456"', "abcDEF123456"),
    ("api-key", "密钥: 9f8e7d6c5b4a", "9f8e7d6c5b4a"),
    ("api-key", "令牌=abcd1234efgh", "abcd1234efgh"),
    ("token", "access_token=abc12345def", "abc12345def"),
    ("token", f"Authorization: Bearer {MIXED}", MIXED),
    ("verification-code", "验证码：493021，五分钟内有效", "493021"),
    ("basic-auth", "postgres://tom:tiger7@db.example.com/x", "tiger7"),
    ("aws-key", "AKIA" + "IOSFODNN7EXAMPLE", None),
    ("github-token", "ghp_" + MIXED[:36], None),
    ("github-token", "github_pat_" + MIXED, None),
    ("gitlab-token", "glpat-" + MIXED[:20], None),
    ("slack-token", "xoxb-" + "1234567890-1234567890-abcdefghijk", None),
    ("stripe-key", "sk_live_" + MIXED[:24], None),
    ("openai-key", "sk-proj-" + MIXED, None),
    ("anthropic-key", "sk-ant-api03-" + MIXED, None),
    ("google-key", "AIza" + MIXED[:35], None),
    ("npm-token", "npm_" + MIXED[:36], None),
    ("pypi-token", "pypi-AgEIcHlwaS5vcmc" + MIXED * 2, None),
    ("sendgrid-key", "SG." + MIXED[:22] + "." + (MIXED + MIXED)[:43], None),
    ("telegram-token", "123456789:" + MIXED[:35], None),
    ("discord-token", "M" + MIXED[:23] + "." + MIXED[:6] + "." + MIXED[:27], None),
    ("azure-key", "AccountKey=" + (MIXED * 3)[:88], None),
    ("gateway-key", "mgk_" + MIXED, None),
    ("json-web-token", "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0NTY3ODkwIn0." + MIXED, None),
    ("identity-number", "身份证号11010519491231002X。", "11010519491231002X"),
    ("phone-number", "手机13800138000，晚上打", "13800138000"),
    ("phone-number", "+86 138-0013-8000", None),
    ("bank-card", "卡号：4111 1111 1111 1111", "4111 1111 1111 1111"),
]
HARMLESS = [
    "密码学很有趣", "忘记密码怎么办", "密码是很重要的", "验证码是6位数字", "密码为AES加密", "密码是Base64编码的",
    "密码长度为8到16位", "密钥为2048位", "令牌环网", "口令是什么", "密码：见保险箱", "忘记密码：点击重置",
    "the password policy was changed", "secret garden", "token ring", "The secret of 1984", "password: required",
    "The password is base64-encoded", "password: see the safe", "password managers: KeePass2", "max_tokens: 4096",
    "secrets: allowed", "api_key: ${API_KEY}", "password = os.environ['DB_PASSWORD']", "password: <your password>",
    "password: ********", "password=getpass()", "password: op://vault/item", "token: Optional[str]",
    "password: str | None",
    "[[Password policy 2024]]", "secret: be kind", "Secret: 2 eggs", "secretary: Anna1990", "primary key: id_123456",
    "commit 8da1f3c0a5c1e7d9b8a7c6d5e4f3a2b1c0d9e8f7", "id 123e4567-e89b-12d3-a456-426614174000",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "mem_01m8nw049m4mmbwdczx89kn05c",
    "![x](data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4)",
    "git@github.com:a/b.git",
    "https://example.com/item/13812345678", "https://example.com/?id=13812345678", "at 1700000000000",
    "no 2013812345678",
    "https://user:password@host", "110105194912310021", "卡号：4111 1111 1111 1112", "password: 8-16 characters",
    "password: 2026-11-30", "password hash: $2b$12$abcdefg", "a PEM file has BEGIN RSA PRIVATE KEY in it",
]  # fmt: skip


@pytest.mark.parametrize(("kind", "text", "value"), SECRETS)
def test_a_secret_is_found_where_it_stands_and_masked(kind, text, value):
    value = value or text
    padded = f"First line.\n  {text}\nLast line."
    (found,) = find_secrets(padded)
    at = padded.index(value)
    column = at - padded.index("\n")
    assert found == FoundSecret(kind, 2, column, column + len(value))
    assert value not in repr(found)
    masked = mask(padded)
    assert masked == padded.replace(value, f"[secret removed: {kind}]")
    assert mask(masked) == masked
    assert find_secrets(masked) == ()


@pytest.mark.parametrize("text", HARMLESS)
def test_what_merely_speaks_of_secrets_is_none(text):
    assert find_secrets(text) == ()


def test_a_private_key_is_masked_as_a_whole_also_where_its_end_is_missing():
    lines = "-----BEGIN OPENSSH " + "PRIVATE KEY-----\n" + f"{MIXED}\n" * 3
    assert mask(f"a\n{lines}-----END OPENSSH PRIVATE KEY-----\nb") == "a\n[secret removed: private-key]\nb"
    assert mask(f"a\n{lines}then text goes on") == "a\n[secret removed: private-key]\nthen text goes on"
    (found,) = find_secrets(f"a\n{lines}-----END OPENSSH PRIVATE KEY-----\nb")
    assert (found.kind, found.line, found.column) == ("private-key", 2, 1)


def test_personal_numbers_may_be_left_alone():
    text = "手机13800138000，密码：hunter2"
    assert [one.kind for one in find_secrets(text)] == ["phone-number", "password"]
    assert [one.kind for one in find_secrets(text, personal=False)] == ["password"]
    assert mask(text, personal=False) == "手机13800138000，密码：[secret removed: password]"


def test_a_note_with_a_secret_is_held_unless_a_person_allows_it():
    data = b"---\ntype: fact\n---\nTea.\npassword: hunter2\n"
    held = held_for_secret(parse(data))
    assert (held.readiness, held.properties, held.problems[0].kind, held.problems[0].line) == ("held", {}, "secret", 5)
    assert "hunter2" not in str(held.problems)
    allowed = parse(data.replace(b"type: fact", b"secrets: Allowed"))
    assert held_for_secret(allowed) is allowed
    assert held_for_secret(parse(data.replace(b"type: fact", b"secrets: yes"))).readiness == "held"


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=60), st.sampled_from(SECRETS), st.text(max_size=60))
def test_masking_is_done_once_and_leaves_nothing_to_find(before, secret, after):
    masked = mask(f"{before}\n{secret[1]}\n{after}")
    assert find_secrets(masked) == ()
    assert secret[2] is None or secret[2] not in masked or secret[2] in before + after


HOSTILE = [
    "eyJ",
    ".eyJ",
    "password:",
    "1",
    "13812345678 ",
    "sk-",
    "glagent-",
    "://a:",
    "密码",
    " 密码 （",
    "api_key",
    "[",
]


@pytest.mark.parametrize("seed", HOSTILE)
def test_no_text_takes_long(seed):
    text = seed * (300_000 // len(seed))
    begun = time.perf_counter()
    find_secrets(text)
    assert time.perf_counter() - begun < 2


def test_ordinary_notes_pass_quickly():
    """About 0.05 ms for a kilobyte; an import takes in well over a thousand notes a second."""
    words = ["tea", "garden", "green", "morning", "friends", "memory", "prefers", "policy", "second", "with", "the"]
    pick = random.Random(1)
    notes = ["\n".join(" ".join(pick.choices(words, k=14)) + "." for _ in range(12)) for _ in range(50)]
    find_secrets(notes[0])
    begun = time.perf_counter()
    assert not any(find_secrets(note) for note in notes)
    assert (time.perf_counter() - begun) / len(notes) < 0.002  # generous: other work may share the machine
