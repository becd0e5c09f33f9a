# Runs beside Redis, or beside a Sentinel, and makes it use changed certificates and passwords. Connections in use stay.
#
#   SELF       the server beside it, HOST:PORT
#   SENTINELS  set beside a Sentinel: all of them. A Sentinel reads its certificate at its start alone, so it is ended, and started
#              again by the kubelet: one after another, and only while the others answer
. "${0%/*}/common.sh"
: "${EVERY_SECONDS:=5}" "${TURN_SECONDS:=20}"

pause() { sleep "$1" & wait $!; }

seen() { cat "$@" | sha256sum; }
certificates_pause() { sleep "$1" & wait $!; }

seen() { seen "$TLS/tls.crt" "$TLS/tls.key" "$TLS/ca.crt"; }
passwords_pause() { sleep "$1" & wait $!; }

seen() { seen "$USERS"/*; }

# As the administrator, by the new password or by the one the server was given before.
here() {
  for file in "$RUN/administrator" "$USERS/administrator"; do
    while read -r secret || [ -n "$secret" ]; do
      answer=$(ask "$SELF" administrator "$secret" "$@") || continue
      case $answer in *WRONGPASS* | *NOAUTH*) continue ;; esac
      echo "$answer"
      return
    done < "$file"
  done
  return 1
}

# Redis reads the files again although their names are the same.
reload_certificates() {
  [ "$(here config set tls-cert-file "$TLS/tls.crt" tls-key-file "$TLS/tls.key" tls-ca-cert-file "$TLS/ca.crt")" = OK ]
}

# One user after another, each at once: unlike ACL LOAD that ends no connection. The file is for the next start.
reload_passwords() (
  set -f
  users "$SETTINGS/users.acl" > "$RUN/users.acl.new" || return 1
  while read -r _ name rules; do
    # shellcheck disable=SC2086 # each rule is a word
    set -- $rules
    [ "$(here acl setuser "$name" reset "$@")" = OK ] || return 1
    [ "$name" != administrator ] || keep_administrator
  done < "$RUN/users.acl.new"
  [ "$(here config set masterauth "$(password "$USERS/replication")")" = OK ] && mv "$RUN/users.acl.new" "$RUN/users.acl"
)

# Ends this Sentinel when its turn has come and all others answer.
restart_in_turn() {
  for sentinel in $SENTINELS; do
    [ "$sentinel" != "$SELF" ] || break
    pause "$TURN_SECONDS"
  done
  for sentinel in $SENTINELS; do
    [ "$sentinel" = "$SELF" ] || [ "$(ask "$sentinel" probe probe ping)" = PONG ] || return 1
  done
  case $(here shutdown) in *ERR* | *NOPERM*) return 1 ;; esac
}

certificates=$(certificates_seen)
passwords=$(passwords_seen)
while pause "$EVERY_SECONDS"; do
  new_certificates=$(certificates_seen)
  new_passwords=$(passwords_seen)
  if [ -n "${SENTINELS:-}" ]; then
    [ "$certificates$passwords" != "$new_certificates$new_passwords" ] || continue
    restart_in_turn || { say "changed files: this Sentinel waits until the others answer"; continue; }
    say "changed files: the Sentinel starts again with them"
  else
    if [ "$passwords" != "$new_passwords" ]; then
      reload_passwords || { say "the changed passwords are not in use: Redis does not take them"; continue; }
      say "the changed passwords are in use"
    fi
    passwords=$new_passwords
    [ "$certificates" != "$new_certificates" ] || continue
    reload_certificates || { say "the changed certificate is not in use: Redis does not take it"; continue; }
    say "the changed certificate is in use"
  fi
  certificates=$new_certificates
  passwords=$new_passwords
done
