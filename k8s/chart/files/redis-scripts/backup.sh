# Writes the data of this server to standard output, in the format that restore.sh takes. It goes through a file, as
# redis-cli adds its own mark at the end when it writes to standard output.
. "${0%/*}/common.sh"
trap 'rm -f "$DATA/backup.rdb"' EXIT
REDISCLI_AUTH=$(password "$USERS/administrator") redis-cli -h localhost -p "$(port "$SELF")" --tls --cacert "$TLS/ca.crt" --cert "$TLS/tls.crt" --key "$TLS/tls.key" \
  --user administrator --no-auth-warning --rdb "$DATA/backup.rdb" >&2 && cat "$DATA/backup.rdb"
