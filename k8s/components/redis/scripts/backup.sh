# Writes what this server holds to standard output, as a file that restore.sh takes. It goes through a file: redis-cli leaves its own
# mark at the end of what it writes elsewhere.
. "${0%/*}/common.sh"
trap 'rm -f "$DATA/backup.rdb"' EXIT
REDISCLI_AUTH=$(password "$USERS/administrator") redis-cli -h localhost -p "$(port "$SELF")" --tls --cacert "$TLS/ca.crt" --cert "$TLS/tls.crt" --key "$TLS/tls.key" \
  --user administrator --no-auth-warning --rdb "$DATA/backup.rdb" >&2 && cat "$DATA/backup.rdb"
