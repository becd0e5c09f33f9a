# Saves a backup from standard input. It replaces the data of this server at its next start.
. "${0%/*}/common.sh"
cat > "$DATA/restore.rdb.new" || exit 1
if ! redis-check-rdb "$DATA/restore.rdb.new" >&2; then
  rm -f "$DATA/restore.rdb.new"
  exit 1
fi
mv "$DATA/restore.rdb.new" "$DATA/restore.rdb"
say "when every server has the backup, delete their pods, all at once"
