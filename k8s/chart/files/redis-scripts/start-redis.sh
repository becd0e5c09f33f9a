# Starts Redis as what the Sentinels say it is: the master, or a replica of it. Told to stop, a master hands over first.
#
#   SELF       this server, HOST:PORT, as the others reach it
#   SERVERS    all servers
#   SENTINELS  all Sentinels
. "${0%/*}/common.sh"

# Whether this disk is new while another server has sessions. A master that came back empty would empty its replicas too: it does not
# come back, and the Sentinels choose another.
would_empty_the_others() {
  [ ! -e "$DATA/appendonlydir" ] || return 1
  for other in $SERVERS; do
    [ "$other" != "$SELF" ] || continue
    keys=$(administer "$other" dbsize)
    [ "${keys:-0}" -eq 0 ] 2>/dev/null || return 0
  done
  return 1
}

waited=0
until master=$(named_master) && [ -n "$master" ] && { [ "$master" != "$SELF" ] || ! would_empty_the_others; }; do
  reason="a majority of the Sentinels"
  [ -z "$master" ] || reason="another master: this disk is empty"
  [ $((waited % 10)) -ne 0 ] || say "waiting for $reason"
  waited=$((waited + 1))
  sleep 1
done
say "the master is $master"

users "$SETTINGS/users.acl" > "$RUN/users.acl" || exit 1
keep_administrator
{
  echo "include $SETTINGS/redis.conf"
  echo "dir $DATA"
  echo "tls-port $(port "$SELF")"
  certificate
  echo "aclfile $RUN/users.acl"
  echo "masteruser replication"
  echo "masterauth $(password "$USERS/replication")"
  echo "replica-announce-ip $(host "$SELF")"
  echo "replica-announce-port $(port "$SELF")"
  [ "$master" = "$SELF" ] || echo "replicaof $(host "$master") $(port "$master")"
} > "$RUN/redis.conf"

# A backup that restore.sh has kept takes the place of the append-only file, as its first part.
if [ -e "$DATA/restore.rdb" ]; then
  rm -rf "$DATA/restored" && mkdir "$DATA/restored" && mv "$DATA/restore.rdb" "$DATA/restored/appendonly.aof.1.base.rdb" || exit 1
  echo "file appendonly.aof.1.base.rdb seq 1 type b" > "$DATA/restored/appendonly.aof.manifest"
  rm -rf "$DATA/appendonlydir" && mv "$DATA/restored" "$DATA/appendonlydir" || exit 1
  say "starts with the backup"
fi

# A planned failover takes a second; one that Sentinels have to notice takes several. A Sentinel that does not know the replicas yet, or
# is at another failover, refuses: it is asked again.
hand_over() {
  accepted=
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    [ "$(named_master)" = "$SELF" ] || return
    for sentinel in $SENTINELS; do
      [ -z "$accepted" ] && [ "$(administer "$sentinel" sentinel failover sessions)" = OK ] && accepted=yes
    done
    sleep 1
  done
}

stop() {
  trap '' TERM INT
  hand_over
  kill -TERM "$server"
}

redis-server "$RUN/redis.conf" &
server=$!
trap stop TERM INT
wait "$server"
trap '' TERM INT
wait "$server"
