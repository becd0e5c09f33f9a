"""Runs code in a Jupyter kernel over its WebSocket, as a notebook's page does, and prints the result."""
import json
import sys
import uuid

import websocket  # websocket-client, which jupyter_server brings

DEADLINE_SECS = 30

url, cookie, origin, code = sys.argv[1:]
session = uuid.uuid4().hex
socket = websocket.create_connection(url, cookie=cookie, origin=origin, timeout=DEADLINE_SECS)
socket.send(
    json.dumps(
        {
            "header": {"msg_id": uuid.uuid4().hex, "msg_type": "execute_request", "session": session, "username": "ada", "version": "5.3"},
            "parent_header": {},
            "metadata": {},
            "content": {"code": code, "silent": False, "store_history": False, "user_expressions": {}, "allow_stdin": False},
            "channel": "shell",
        }
    )
)
while True:
    told = json.loads(socket.recv())
    if told["header"]["msg_type"] == "execute_result":
        print(told["content"]["data"]["text/plain"])
        break
    if told["header"]["msg_type"] == "error":
        sys.exit(told["content"]["evalue"])
socket.close()
