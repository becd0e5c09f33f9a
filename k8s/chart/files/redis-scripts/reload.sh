# Runs next to Redis (`reload.sh redis`) or a Sentinel (`reload.sh sentinel`) and lets it use changed certificates and
# passwords. Open connections stay. A Sentinel reads files only at its start: this script ends it, and
# start-sentinel.sh starts it again. This happens to one Sentinel at a time, while the others answer steadily.
#
#   SELF       its own server, HOST:PORT, as the others reach it
#   SENTINELS  all Sentinels
. "${0%/*}/common.sh"
: "${EVERY_SECONDS:=5}" "${TURN_SECONDS:=20}" "${FOLLOW_EVERY:=6}" "${PATIENCE:=120}"

pause() { sleep "$1" & wait $!; }

certificates_seen() { cat "$TLS/tls.crt" "$TLS/tls.key" "$TLS/ca.crt" | sha256sum; }
passwords_seen() { cat "$USERS"/* | sha256sum; }

# Asks its own server as the administrator, with the old or the new password.
here() {
  for file in "$RUN/administrator" "$USERS/administrator"; do
    while read -r secret || [ -n "$secret" ]; do
      answer=$(ask "localhost:$(port "$SELF")" administrator "$secret" "$@") || continue
      case $answer in *WRONGPASS* | *NOAUTH*) continue ;; esac
      echo "$answer"
      return
    done < "$file"
  done
  return 1
}

# Redis reads the files again, even if their names are the same.
reload_certificates() {
  [ "$(here config set tls-cert-file "$TLS/tls.crt" tls-key-file "$TLS/tls.key" tls-ca-cert-file "$TLS/ca.crt")" = OK ]
}

# Sets one user after another: unlike ACL LOAD, this ends no connection. The file is for the next start.
reload_passwords() (
  set -f # patterns of keys are not names of files
  users "$SETTINGS/users.acl" > "$RUN/users.acl.new" || return 1
  while read -r _ name rules; do
    # shellcheck disable=SC2086 # each rule is a word
    [ "$(here acl setuser "$name" reset $rules)" = OK ] || return 1
    [ "$name" != administrator ] || keep_administrator
  done < "$RUN/users.acl.new"
  [ "$(here config set masterauth "$(password "$USERS/replication")")" = OK ] && mv "$RUN/users.acl.new" "$RUN/users.acl"
)

reload_redis() {
  if [ "$passwords" != "$new_passwords" ]; then
    reload_passwords || { say "the changed passwords are not in use: Redis does not take them"; return 1; }
    say "the changed passwords are in use"
    passwords=$new_passwords
  fi
  if [ "$certificates" != "$new_certificates" ]; then
    reload_certificates || { say "the changed certificate is not in use: Redis does not take it"; return 1; }
    say "the changed certificate is in use"
    certificates=$new_certificates
  fi
}

# Whether a Sentinel has run for a whole turn, so that all others have seen it again. Sentinels get changed files at
# different times.
is_steady() {
  up=$(ask "$1" probe probe info server | sed -n 's/^uptime_in_seconds:\([0-9]*\).*/\1/p')
  [ "${up:-0}" -ge "$TURN_SECONDS" ]
}

# A Sentinel that stays away must not keep the others from loading their certificates.
reload_sentinel() {
  [ "$certificates$passwords" != "$new_certificates$new_passwords" ] || return 0
  for sentinel in $SENTINELS; do
    if [ "$tries" -gt 0 ] || [ "$sentinel" = "$SELF" ]; then break; fi
    pause "$TURN_SECONDS"
  done
  tries=$((tries + 1))
  for sentinel in $SENTINELS; do
    [ "$tries" -gt "$PATIENCE" ] || [ "$sentinel" = "$SELF" ] || is_steady "$sentinel" || { say "changed files: waiting for $sentinel"; return 1; }
  done
  : > "$RUN/start-again"
  case $(here shutdown) in *ERR* | *NOPERM*) rm -f "$RUN/start-again"; say "changed files: this Sentinel does not end"; return 1 ;; esac
  say "changed files: this Sentinel starts again with them"
  certificates=$new_certificates passwords=$new_passwords tries=0
}

# Sentinels do not know a replica of a replica and leave it there, so this server follows the master that they name.
# It happens if a master is replaced in its first seconds, before all Sentinels know its replicas.
follow_master() {
  master=$(named_master)
  is=$(here role | { read -r word && read -r name && read -r number && echo "$word $name:$number"; })
  strays=
  case $is in "slave "*) [ -z "$master" ] || [ "$is" = "slave $master" ] || strays=$is ;; esac
  [ -n "$strays" ] && [ "$strays" = "$strayed" ] && here replicaof "$(host "$master")" "$(port "$master")" > /dev/null && say "follows $master again"
  strayed=$strays
}

certificates=$(certificates_seen)
passwords=$(passwords_seen)
strayed=
tries=0
turn=0
while pause "$EVERY_SECONDS"; do
  new_certificates=$(certificates_seen)
  new_passwords=$(passwords_seen)
  "reload_$1"
  turn=$((turn + 1))
  [ "$1" = sentinel ] || [ $((turn % FOLLOW_EVERY)) -ne 0 ] || follow_master
done
