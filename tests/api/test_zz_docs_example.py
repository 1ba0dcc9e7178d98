"""x"""
def test_a_deleted_memory_is_not_found(server):
    """What is forgotten is not recalled."""
    body = server.write("The safe is behind the picture.", user_id="tom")
    server.http.delete(f"/v1/memory/{body['id']}?version=1")
    assert server.find("safe picture", user_id="tom") == []
