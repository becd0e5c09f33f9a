oauth2-proxy \
  --session-store-type=redis \
  --redis-connection-url=redis://redis:6379/1 \
  --redis-password='an example/of a password' \
  --prompt=select_account
