# Completion of tpudist for fish, made by `tpudist completion fish`.
complete -c tpudist -f -a '(set -l asked (string replace -r "^~/" "$HOME/" -- (commandline -opc)[1])
  $asked completion words (commandline -cp | string collect) 2> /dev/null
  or __fish_complete_path (commandline -ct))'
