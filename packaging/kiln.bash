# Completion of `kiln` for bash. Verbs, options and keys are asked of the command itself, so they are those of the version
# that is installed.

_kiln_lines() { COMPREPLY+=($(compgen -W "$1" -- "$2")); }

_kiln_files() { # PATTERN WORD: files that match, and folders
  local IFS=$'\n'
  compopt -o filenames 2>/dev/null
  COMPREPLY+=($(compgen -f -X "!$1" -- "$2") $(compgen -d -- "$2"))
}

_kiln() {
  local command=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
  COMPREPLY=()

  # The words of the verb, so far as they have been typed; after `--` another command's words stand.
  local verbs verb='' i typed
  for ((i = 1; i < COMP_CWORD; ++i)); do
    [[ ${COMP_WORDS[i]} == -- ]] || continue
    if ((i == COMP_CWORD - 1)); then COMPREPLY=($(compgen -c -- "$word")); else _kiln_files '*' "$word"; fi
    return
  done
  verbs=$("$command" --help 2>/dev/null | sed -n '/^Verbs:/,/^$/{/^  /{s/^  //;s/  .*//;s/ [^a-z].*//;p}}')
  for ((i = 1; i < COMP_CWORD; ++i)); do
    typed=${verb:+$verb }${COMP_WORDS[i]}
    [[ $'\n'$verbs$'\n' == *$'\n'"$typed"[$' \n']* ]] || break
    verb=$typed
  done

  # bash takes a word apart at `=` and `:`: the value of a key, the number of a device. Those are not known here.
  [[ $word == [=:] || $before == [=:] ]] && return
  case $before in
    --log) _kiln_lines 'debug info warning error off' "$word"; return ;;
    --progress) _kiln_lines 'auto plain none' "$word"; return ;;
    --device) _kiln_lines 'cpu opengl:0 amdgpu:0' "$word"; return ;;
    --target)
      local targets='gfx1030 gfx1100 gfx1101 gfx1102 gfx1103'
      [[ $verb == simulate ]] && targets='gfx1030 gfx1100'
      _kiln_lines "$targets" "$word"
      return
      ;;
    --cache-dir | --plugin-path) _kiln_files '' "$word"; return ;;
    --output | --trace) _kiln_files '*' "$word"; return ;;
    --set)
      compopt -o nospace 2>/dev/null
      _kiln_lines "$("$command" config show 2>/dev/null | sed -n 's/^([^)]*) \([^ ]*\) =.*/\1=/p')" "$word"
      return
      ;;
    --repeat | --jobs | --title | --top | --budget | --sample | --max-age | --max-size) return ;;
  esac

  if [[ $word == -* ]]; then
    _kiln_lines "$("$command" $verb --help 2>/dev/null | sed -n 's/^  \(--[a-z-]*\).*/\1/p')" "$word"
    return
  fi
  local next
  next=$(sed -n "s/^${verb:+$verb }\([a-z0-9]*\).*/\1/p" <<<"$verbs" | sort -u)
  if ((COMP_CWORD == i)) && [[ -n $next ]]; then _kiln_lines "$next" "$word"; fi
  if [[ -n $verb ]]; then
    case $verb in
      'kernel build') _kiln_files '*.cl' "$word" ;;
      bench) _kiln_lines 'cache start conv executor selector tuner pm4' "$word" ;;
      'bench compare' | 'bench table') _kiln_files '*.json' "$word" ;;
      'pm4 dump' | 'tune export' | 'tune import' | 'selector replay') _kiln_files '*' "$word" ;;
      run | tune* | devices | plugins | config* | selector* | 'cache warm' | 'cache push' | 'cache pull' | 'cache remote status') _kiln_files '*.toml' "$word" ;;
      'cache export' | 'cache import' | 'cache layer create' | report) _kiln_files '*' "$word" ;;
    esac
  fi
}

complete -F _kiln kiln
