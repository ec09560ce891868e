# Completion of tpudist for bash, made by `tpudist completion bash`.
_tpudist() {
  local line=${COMP_LINE:0:COMP_POINT} IFS=$'\n'
  COMPREPLY=($("${1/#\~/$HOME}" completion words "$line" 2> /dev/null | cut -f 1))
  # Where bash ends words at = or :, it replaces only what is behind the last of them.
  local last=${line##*[[:space:]]} breaks=${COMP_WORDBREAKS//[^=:]/}
  if [[ $breaks && $last == *[$breaks]* ]]; then
    COMPREPLY=("${COMPREPLY[@]#"${last%"${last##*[$breaks]}"}"}")
  fi
  if [[ ${COMPREPLY[0]-} == *= ]]; then compopt -o nospace 2> /dev/null; fi
}
complete -o bashdefault -o default -F _tpudist tpudist
