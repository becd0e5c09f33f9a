# Starts Redis as the master or a replica, as the Sentinels say. A master that has to stop hands over first.
#
#   SELF       this server, HOST:PORT, as the others reach it
#   SERVERS    all servers
#   SENTINELS  all Sentinels
. "${0%/*}/common.sh"
# How long a stop waits for another master. Asking unreachable Sentinels takes up to 18 s more, and the pod has 60 s.
# A failover that takes longer than failover-timeout (10 s) has failed.
: "${HAND_OVER_SECONDS:=30}" "${FAILOVER_SECONDS:=12}"

# Whether this disk is new while another server has sessions. An empty master would empty its replicas too: it does
# not start, and the Sentinels choose another.
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

# A backup from restore.sh replaces the append-only file, as its first part.
if [ -e "$DATA/restore.rdb" ]; then
  rm -rf "$DATA/restored" && mkdir "$DATA/restored" && mv "$DATA/restore.rdb" "$DATA/restored/appendonly.aof.1.base.rdb" || exit 1
  echo "file appendonly.aof.1.base.rdb seq 1 type b" > "$DATA/restored/appendonly.aof.manifest"
  rm -rf "$DATA/appendonlydir" && mv "$DATA/restored" "$DATA/appendonlydir" || exit 1
  say "starts with the backup"
fi

# Whether a Sentinel acts on requests. One that paused for two seconds (its host, a name server) does not act for half
# a minute but still answers OK (Redis, "TILT mode").
acts() { administer "$1" info sentinel | grep -q "^sentinel_tilt:0"; }

# A planned failover takes a second; one that Sentinels have to detect takes several. A Sentinel refuses if it does
# not know the replicas yet or is at another failover: this server asks again.
hand_over() {
  end=$(($(date +%s) + HAND_OVER_SECONDS))
  again=0
  while now=$(date +%s) && [ "$now" -lt "$end" ] && [ "$(named_master)" = "$SELF" ]; do
    # Asks again if nothing happened: a Sentinel that was replaced has lost its failover.
    if [ "$now" -ge "$again" ]; then
      for sentinel in $SENTINELS; do
        acts "$sentinel" || continue
        [ "$(administer "$sentinel" sentinel failover sessions)" != OK ] || { again=$((now + FAILOVER_SECONDS)); break; }
      done
    fi
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
