/** The bash side of completion: needs nothing but bash itself, and may be sourced any number of times. */

export function bashScript(name: string): string {
  return `# bash completion for ${name}; needs no other package
__${name}_values() {
    local entry
    while IFS= read -r entry; do
        case "$entry" in :* | '') ;; *) COMPREPLY+=("\${entry%%$'\\t'*}") ;; esac
    done <<< "$1"
}
__${name}_complete() {
    local line="\${COMP_LINE:0:COMP_POINT}" current="\${COMP_WORDS[COMP_CWORD]}" out directive entry
    local -a words
    # Not COMP_WORDS: bash parts words at = and :, too.
    read -ra words <<< "$line"
    case "$line" in *[[:space:]]) words+=('') ;; esac
    case "$current" in =) current='' ;; esac
    out=$(${name} complete -- "\${words[@]:1}" 2>/dev/null) || return
    directive=\${out##*:}
    COMPREPLY=()
    case "$directive" in
        ${CompletionDirective.FILES})
            compopt -o filenames 2>/dev/null || true
            __${name}_values "$out"
            while IFS= read -r entry; do COMPREPLY+=("$entry"); done < <(compgen -f -- "$current") ;;
        ${CompletionDirective.FOLDERS})
            compopt -o filenames 2>/dev/null || true
            while IFS= read -r entry; do COMPREPLY+=("$entry"); done < <(compgen -d -- "$current") ;;
        *) __${name}_values "$out" ;;
    esac
}
complete -F __${name}_complete ${name}
`;
}

/** What the shell does beside the values it is given; the numbers are those of all four scripts. */
export const CompletionDirective = { FILES: 0, VALUES: 4, FOLDERS: 16 } as const;
export type CompletionDirective = (typeof CompletionDirective)[keyof typeof CompletionDirective];
