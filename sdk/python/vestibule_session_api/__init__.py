"""The session API of Vestibule. `vestibule_session_api.v1` has the messages and stubs."""
