# What the scripts beside this one share. Addresses are HOST:PORT; the defaults are the folders of the pod.
umask 077
: "${SETTINGS:=/etc/redis/settings}" "${USERS:=/etc/redis/users}" "${TLS:=/etc/redis/tls}" "${DATA:=/data}" "${RUN:=/run/redis}"

# What runs as the first process of a container is told to stop by signals it asks for.
trap 'exit 0' TERM INT

say() { echo "$*" >&2; }

host() { echo "${1%:*}"; }
port() { echo "${1##*:}"; }

# The password that this pod itself uses for a user: the first of the file. All of the file are accepted.
password() { read -r first < "$1" || [ -n "$first" ]; echo "$first"; }

# ask ADDRESS USER PASSWORD WORD…: what a server answers, within three seconds. KILL, for what a script that is being stopped does not hear
# (TERM), its children do not hear either, and busybox's timeout does not see to it.
ask() {
  at=$1 user=$2 secret=$3
  shift 3
  REDISCLI_AUTH=$secret timeout -s KILL 3 redis-cli -h "$(host "$at")" -p "$(port "$at")" --tls --cacert "$TLS/ca.crt" --cert "$TLS/tls.crt" \
    --key "$TLS/tls.key" --user "$user" --no-auth-warning "$@" 2>/dev/null
}

# The same as the administrator.
administer() {
  place=$1
  shift
  ask "$place" administrator "$(password "$USERS/administrator")" "$@"
}

# The users of a template with their passwords, one a line, as an ACL file wants them.
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

# Keeps the administrator's password that the server was given: the file of the Secret may be a newer one.
keep_administrator() { cat "$USERS/administrator" > "$RUN/administrator"; }

# Files of the certificate, as settings.
certificate() {
  echo "tls-cert-file $TLS/tls.crt"
  echo "tls-key-file $TLS/tls.key"
  echo "tls-ca-cert-file $TLS/ca.crt"
}

# The master by the word of more than half of the Sentinels; nothing without a majority.
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
