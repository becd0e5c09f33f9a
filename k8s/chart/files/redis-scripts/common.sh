# Functions that the other scripts share. Addresses are HOST:PORT; the defaults are the folders of the pod.
umask 077
: "${SETTINGS:=/etc/redis/settings}" "${USERS:=/etc/redis/users}" "${TLS:=/etc/redis/tls}" "${DATA:=/data}" "${RUN:=/run/redis}"

# The first process of a container receives only the stop signals that it traps.
trap 'exit 0' TERM INT

say() { echo "$*" >&2; }

host() { echo "${1%:*}"; }
port() { echo "${1##*:}"; }

# The password that this pod uses for a user: the first in its file. Redis accepts all passwords of the file.
password() { read -r first < "$1" || [ -n "$first" ]; echo "$first"; }

# ask ADDRESS USER PASSWORD WORD…: the answer of a server, within three seconds. KILL, because children inherit the
# ignored TERM of a script that is being stopped, and busybox's timeout does not reset it.
ask() {
  at=$1 user=$2 secret=$3
  shift 3
  REDISCLI_AUTH=$secret timeout -s KILL 3 redis-cli -h "$(host "$at")" -p "$(port "$at")" --tls --cacert "$TLS/ca.crt" --cert "$TLS/tls.crt" \
    --key "$TLS/tls.key" --user "$user" --no-auth-warning "$@" 2>/dev/null
}

# Asks as the administrator.
administer() {
  place=$1
  shift
  ask "$place" administrator "$(password "$USERS/administrator")" "$@"
}

# The users of a template with their passwords, one on each line, in the format of an ACL file.
users() {
  while read -r line; do
    case $line in user\ *) ;; *) continue ;; esac
    rest=${line#user }
    name=${rest%% *}
    case $line in
      *" PASSWORDS "*)
        known=
        while read -r secret || [ -n "$secret" ]; do [ -z "$secret" ] || known="$known >$secret"; done < "$USERS/$name"
        [ -n "$known" ] || { say "the Secret redis-users has no password for $name"; return 1; }
        echo "${line%% PASSWORDS *}$known ${line#* PASSWORDS }"
        ;;
      *) echo "$line" ;;
    esac
  done < "$1"
}

# Keeps the administrator's password that the server uses: the Secret may already have a newer one.
keep_administrator() { cat "$USERS/administrator" > "$RUN/administrator"; }

# Settings for the files of the certificate.
certificate() {
  echo "tls-cert-file $TLS/tls.crt"
  echo "tls-key-file $TLS/tls.key"
  echo "tls-ca-cert-file $TLS/ca.crt"
}

# The master that more than half of the Sentinels name; empty without a majority.
named_master() {
  answers=
  count=0
  for sentinel in $SENTINELS; do
    count=$((count + 1))
    answer=$(administer "$sentinel" sentinel get-master-addr-by-name sessions | { read -r name && read -r number && echo "$name:$number"; })
    [ -z "$answer" ] || answers="$answers $answer"
  done
  for one in $answers; do
    votes=0
    for other in $answers; do [ "$one" != "$other" ] || votes=$((votes + 1)); done
    [ $((votes * 2)) -le "$count" ] || { echo "$one"; return; }
  done
}

# The role a data server reports: master, slave, or nothing.
role() { administer "$1" role | { read -r word && echo "$word"; }; }
