# Starts a Sentinel with its saved state (its own file on $DATA) and the current settings, users and passwords. A
# Sentinel reads files only at its start. After reload.sh ends it for changed files, this script starts it again: the
# kubelet would count each restart of the container and wait longer before the next.
#
#   SELF     this Sentinel, HOST:PORT, as the others reach it
#   SERVERS  all servers of Redis; the first is the first master
. "${0%/*}/common.sh"

# The state that a Sentinel learns: the master it monitors, the other Sentinels, its votes.
learned() {
  [ -f "$DATA/sentinel.conf" ] || return 0
  while read -r line; do
    case $line in
      "sentinel monitor "* | "sentinel myid "* | "sentinel current-epoch "* | "sentinel config-epoch "* | "sentinel leader-epoch "* | \
        "sentinel known-replica "* | "sentinel known-sentinel "*) echo "$line" ;;
    esac
  done < "$DATA/sentinel.conf"
}

# The server that reports to be master; without one, this is the first start and the first server becomes master.
first_master() {
  for server in $SERVERS; do
    [ "$(role "$server")" != master ] || { echo "$server"; return; }
  done
  echo "${SERVERS%% *}"
}

write_settings() {
  users "$SETTINGS/sentinels.acl" > "$RUN/users.acl" || return 1
  keep_administrator
  known=$(learned)
  case $known in
    *"sentinel monitor "*) ;;
    *) master=$(first_master) && known="sentinel monitor sessions $(host "$master") $(port "$master") 2" ;;
  esac
  {
    cat "$SETTINGS/sentinel.conf"
    echo "$known"
    echo "dir $DATA"
    echo "tls-port $(port "$SELF")"
    certificate
    echo "aclfile $RUN/users.acl"
    echo "sentinel announce-ip $(host "$SELF")"
    echo "sentinel announce-port $(port "$SELF")"
    echo "sentinel auth-pass sessions $(password "$USERS/sentinel")"
    echo "sentinel sentinel-pass $(password "$USERS/sentinel")"
  } > "$DATA/sentinel.conf.new" && mv "$DATA/sentinel.conf.new" "$DATA/sentinel.conf"
}

stop() {
  trap '' TERM INT
  stopping=yes
  [ -z "$sentinel" ] || kill -TERM "$sentinel"
}

stopping=
while write_settings; do
  rm -f "$RUN/start-again"
  sentinel=
  trap stop TERM INT
  redis-server "$DATA/sentinel.conf" --sentinel &
  sentinel=$!
  [ -z "$stopping" ] || kill -TERM "$sentinel" # the signal came before the process ID was known
  wait "$sentinel"
  ended=$?
  [ -z "$stopping" ] || { wait "$sentinel"; exit 0; }
  [ -e "$RUN/start-again" ] || exit "$ended"
  trap 'exit 0' TERM INT
done
exit 1
