//! Words that are put together, from more than anybody follows, or from names that are anybody's.

use super::*;

/// Variables that name variables are each found out once: such lines took longer than anybody waits. What is too much to know
/// may be anything.
#[test]
fn variables_of_variables_are_no_more_work_than_they_are_words() {
    let path = |n: usize| (0..n).map(|n| format!("[ -d /x{n} ] && D=\"${{D}}${{D:+,}}x{n}\"\n")).collect::<String>();
    let long = format!("a={}; {}rm -rf $b", "x".repeat(3000), "b=$b$a$a$a; ".repeat(400));
    let many: String = (0..70).map(|n| format!("t=dist{n}; ")).collect();
    for (line, want) in [
        (format!("{}rm -rf $x", "x=$x$x;".repeat(40)), Decision::Ask),
        (format!("{}ls $D; git push", path(40)), Decision::Allow),
        (format!("{}git reset --hard", "A=\"$A$B\"; B=\"$B$A\"; ".repeat(20)), Decision::Ask),
        (format!("{}ls", "export PATH=$HOME/bin:$PATH LD=$LD:$PATH; ".repeat(25)), Decision::Ask),
        (long, Decision::Ask),
        // The last of many counts as the first does.
        (format!("{many}t=src; rm -rf $t"), Decision::Ask),
        ("m=--hard; n=$m; o=$n; git reset $o".to_owned(), Decision::Ask),
        ("f() { rm -rf \"$@\"; }; f src".to_owned(), Decision::Ask),
    ] {
        let head: String = line.chars().take(60).collect();
        assert_eq!(shell(&Rules::shipped(), Mode::Yolo, true, &line, &[]).decision, want, "{head}");
    }
}

/// Names of files are anybody's: bash runs what stands in a subscript, and a name with blanks comes apart.
#[test]
fn what_names_of_files_may_say_is_not_safe() {
    let default = |command: &str| shell(&Rules::shipped(), Mode::Default, true, command, &[]).decision;
    for command in [
        "for f in *; do test -v \"$f\"; done",
        "for f in *; do test -f $f && echo $f; done",
        "test *",
        "test -v a*",
        "test -v 'a[$(id)]'",
        "for f in x*; do cat $f; done",
        "for f in *; do head -3 $f; done",
        "for f in *; do printf $f; done",
        "sed 'w out' -e p a.txt",
        "sed -n 'w out' -e 1p a.txt",
        "git tag --list --format='%(*signature:grade)'",
        "go version",
    ] {
        assert_eq!(default(command), Decision::Ask, "{command}");
    }
    for command in
        ["test -f x", "for f in *.txt; do cat \"$f\"; done", "for f in a b; do cat $f; done", "sed -n 1,3p x"]
    {
        assert_eq!(default(command), Decision::Allow, "{command}");
    }
}

/// Where a script says what a variable is, and that is too much to follow, it may be what decides.
#[test]
fn more_than_is_followed_may_be_what_decides() {
    let many: String = (0..70).map(|n| format!("a=x{n}; ")).collect();
    let long = format!("a={}; ", "x".repeat(33_000));
    let listed: Vec<String> = (0..70).map(|n| format!("x{n}")).collect();
    let mut table: Vec<String> = ["a=--hard; git reset $a", "a=--force; git push $a", "a=+main; git push origin $a"]
        .into_iter()
        .chain(["a=-auto-approve; terraform apply $a", "a=-delete; find src $a", "a=-D; git branch $a main"])
        .chain(["a=-fdx; git clean $a", "a=-R; chmod $a 777 src"])
        .flat_map(|it| [format!("{many}{it}"), format!("{long}{it}")])
        .collect();
    table.extend([
        "a=--hard; b=$a; c=$b; d=$c; e=$d; git reset $e".to_owned(),
        format!("for a in {} --hard; do git reset $a; done", listed.join(" ")),
        format!("git reset {{{},--hard}}", listed.join(",")),
        format!("f() {{ git reset $@; }}; f {} --hard", listed.join(" ")),
        "git reset ${b:-\"--hard\"}".to_owned(),
        "git reset \"${b:-${c:---hard}}\"".to_owned(),
        "a+=--; a+=hard; git reset $a".to_owned(),
        "a=(); a+=(--hard); git reset \"${a[@]}\"".to_owned(),
    ]);
    let yolo = |command: &str| shell(&Rules::shipped(), Mode::Yolo, true, command, &[]).decision;
    let wrong: Vec<&str> =
        table.iter().filter(|it| yolo(it) != Decision::Ask).map(|it| &it[it.len().saturating_sub(60)..]).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn variables_are_set_in_passing_too() {
    let table = r##"
        : ${a:=--hard}; git reset $a
        : "${a=--hard}"; git reset "$a"
        b=--hard; : ${a:=$b}; git reset $a
        case ${a:=--hard} in x) ;; esac; git reset $a
        env a=--hard bash -c 'git reset $a'
        env -i "a=--hard" sh -c 'git reset $a'
        b=--hard; env a=$b bash -c 'git reset $a'
        sudo a=--hard bash -c 'git reset $a'
        read a <<E⏎--hard⏎E⏎git reset $a
        read x a <<'E'⏎x --hard⏎E⏎git reset $a
        b=--hard⏎read a <<E⏎$b⏎E⏎git reset $a
        while read a; do git reset $a; done <<E⏎--hard⏎E
        cat <<E | while read a; do git reset $a; done⏎--hard⏎E
        mapfile -t a <<E⏎--hard⏎E⏎git reset ${a[0]}
        a=--hard; declare -n b=a; git reset $b
        declare -gn b=a; b=--hard; git reset $a
        f() { local -n r=$1; git reset $r; }; a=--hard; f a
        declare "a=--hard"; git reset $a
        export {a,b}=--hard; git reset $a
        n=a; declare $n=--hard; git reset $a
        args=(origin main); [ -n "$F" ] && args+=("--force"); git push "${args[@]}"
        a=([0]=--hard); git reset "${a[@]}"
        a=("HEAD --hard"); git reset ${a[0]}
        f() { git push "${@:2}"; }; f x --force origin
        f() { git reset "${1:-HEAD}"; }; f --hard
        git reset ${1:---hard}
        set -- x--hard; git reset ${1#x}
        while read f; do cat $f; done <<E⏎.env⏎E
        read f <<'E'⏎.env⏎E⏎cat "$f"
        T=$(mktemp); declare "T=src"; rm -rf $T"##;
    check_in_yolo(Decision::Ask, table);
    let table = r##"
        : ${a:=main}; git checkout $a
        env GIT_PAGER=cat git log
        env a=main bash -c 'git checkout $a'
        read a <<E⏎main⏎E⏎git checkout $a
        while read f; do git add "$f"; done <<E⏎src/a⏎src/b⏎E
        declare -A m; m[x]=1; echo ${m[x]}
        declare -x a=main; git checkout $a
        export A=1 B="$C"; make
        export $(grep -v '^#' x | xargs)
        args=(origin main); git push "${args[@]}"
        echo "$a $(pwd)"
        git commit -m "$V $(date)""##;
    check_in_yolo(Decision::Allow, table);
}

/// A variable is what the script says only where nothing else can have set it, and where it is set for sure.
#[test]
fn what_a_script_says_of_a_variable_counts_where_it_is_set() {
    let table = r##"
        B=build; rm -rf "$B"
        for d in build dist; do rm -rf "$d"; done
        rm -rf {build,dist}
        V=1.2; mv x.tgz "x-$V.tgz"
        for f in *.rs; do mv "$f" "${f%.rs}.txt"; done
        for f in *.md; do mv "$f" "docs/$f"; done"##;
    check_in_yolo(Decision::Allow, table);
    let table = r##"
        B=src; rm -rf "$B"
        for d in build src; do rm -rf "$d"; done
        rm -rf {build,src}
        rm -rf "$HOME"; HOME=build
        false && B=build; rm -rf "$B/"
        B=build & rm -rf "$B/"
        (B=build); rm -rf "$B/"
        if x; then B=build; fi; rm -rf "$B/"
        f() { B=build; }; rm -rf "$B/"
        B=build; bash -c 'rm -rf "$B/"'
        for d in build; do :; done; rm -rf $d/
        : ${B:=build}; rm -rf "$B"
        B=build rm -rf $B
        B=build; unset B; rm -rf "$B/"
        B=build; B=src; rm -rf "$B"
        B=build; read B; rm -rf $B
        B=build; eval "$x"; rm -rf $B
        B=build; declare "B=src"; rm -rf $B
        B=build; rm -rf "${B%build}"
        B=build; rm -rf "$B/../src"
        B="build src"; rm -rf $B
        IFS=u; B=build; rm -rf $B
        V=..; mv a "$V/x"
        mv a "$X"
        mv a "../$f""##;
    check_in_yolo(Decision::Ask, table);
}

#[test]
fn variables_are_cut_as_bash_cuts_them() {
    let table = r##"
        a=x--hard; git reset ${a:1}
        a=x--hard; git reset ${a#x}
        a=x/--hard; git reset "${a##*/}"
        a=--hard-x; git reset ${a%-*}
        a=--HARD; git reset ${a,,}
        a=x-hard; git reset ${a/x/-}
        a=--hardx; git reset ${a%?}
        a=x--hard; git reset ${a: -6}"##;
    check_in_yolo(Decision::Ask, table);
    let table = r##"
        v=v1.2; git checkout ${v#v}
        b=$(git branch --show-current); git checkout ${b#origin/}
        git checkout ${BRANCH#origin/}
        b=origin/main; git checkout "${b##*/}"
        f=src/a.rs; cat "${f%.rs}.md""##;
    check_in_yolo(Decision::Allow, table);
}

#[test]
fn stars_may_find_what_begins_with_a_dot() {
    let table = r##"
        shopt -s dotglob; cat *
        shopt -s nullglob dotglob && head -n 1 ./*
        setopt GLOB_DOTS; cat *"##;
    check_in_yolo(Decision::Ask, table);
    let table = r##"
        shopt -s nullglob; cat *
        shopt -s dotglob; cat src/a"##;
    check_in_yolo(Decision::Allow, table);
}

/// Work that grows with words, values and commands all at once would stop everything for minutes.
#[test]
fn many_words_and_values_are_no_more_work_than_they_are_together() {
    let many = |each: &dyn Fn(usize) -> String| (0..1000).map(each).collect::<Vec<_>>().join("; ");
    let table = [
        many(&|it| format!("a=$(echo b{it}); git reset $a")),
        many(&|it| format!("a=b{it}; git reset $a")),
        many(&|it| format!("git reset $(echo a{it})")),
        many(&|it| format!("T=$(mktemp -p d{it}); rm -rf $T src")),
        format!("{}git reset --hard", "env a=x ".repeat(6000)),
        format!("git reset {}", many(&|it| format!("$(echo a{it})")).replace(';', "")),
    ];
    for it in table {
        check_in_yolo(Decision::Ask, &it);
    }
}

/// Arithmetic runs what stands in a variable: where that is a number, it is one.
#[test]
fn what_counts_runs_nothing() {
    let table = r##"
        npm test; rc=$?; if [[ $rc -ne 0 ]]; then echo x; fi
        n=${#a}; [[ $n -gt 0 ]]
        n=$(grep -c foo f); [[ $n -gt 0 ]]
        n=0; while read -r line; do ((n++)); done < f
        n=0; while read -r l; do n=$((n+1)); done < f; [[ $n -eq 3 ]]"##;
    check_in_yolo(Decision::Allow, table);
    let table = r##"
        while read -r n; do ((n++)); done < f
        n=0; read n; ((n++))
        n=0; read "$x"; ((n++))
        n=0; read -an; ((n++))
        n=0; printf -v n %s "$x"; ((n++))
        n=0; x=$(cat f); declare "n=$x"; ((n++))
        n=$(grep -c foo f g); [[ $n -gt 0 ]]
        n=$(cat x); [[ $n -gt 0 ]]
        read x; n=$x; ((n++))
        read x; n=$((x)); ((n++))
        read m; n=0; ((n+=m))"##;
    check_in_yolo(Decision::Ask, table);
}
