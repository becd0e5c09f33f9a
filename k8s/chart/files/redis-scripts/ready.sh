# Whether Redis is a master, or a replica that is linked to its master.
. "${0%/*}/common.sh"
ask "$SELF" probe probe role | {
  read -r word
  [ "$word" = master ] && exit
  read -r _ && read -r _ && read -r link && [ "$word" = slave ] && [ "$link" = connected ]
}
