//! Shell commands, by the hundred.

use super::{super::command_prefixes, *};

#[test]
fn the_safe_table_is_sorted() {
    assert!(super::super::safe::safe_names().is_sorted());
}

#[test]
fn shipped_rules() {
    let count = check(
        &rules(""),
        &[],
        r##"
        default  ls -la => allow
        default!  ls -la => deny
        autoEdit  ls -la => allow
        autoEdit  make => ask
        yolo  rm -rf / => ask
        default  ls && pwd => allow
        default  ls; pwd⏎whoami => allow
        default  ls | grep x | wc -l => allow
        default  ls || true => allow
        default  ls & => allow
        default  ! ls => allow
        default  (ls; pwd) => allow
        default  { ls; } => allow
        default  if true; then ls; else pwd; fi => allow
        default  ls # a comment => allow
        default  # only a comment => ask
        default  cd /tmp && ls => allow
        default  cd /tmp && git status => ask
        default  cd a b => ask
        default  echo 'a;rm x' => allow
        default  echo "a > b" => allow
        default  echo $'abc' => allow
        default  echo $'a\x41' => ask
        default  echo a\ b => allow
        default  echo {a,b} => ask
        default  echo {1..3} => ask
        default  echo HEAD@{1} => allow
        default  echo ~ => allow
        default  echo héllo 世界 => allow
        default  echo $HOME => ask
        default  echo ${x@P} => ask
        default  echo ${x:-$(rm y)} => ask
        default  echo "$(rm x)" => ask
        default  echo `rm x` => ask
        default  echo $((1+1)) => ask
        default  ls <(rm x) => ask
        default  ls >f => ask
        default  ls > f => ask
        default  ls >>f => ask
        default  ls >|f => ask
        default  ls &>f => ask
        default  ls 2>/dev/null => allow
        default  ls >/dev/null 2>&1 => allow
        default  ls 2>&1 | head -5 => allow
        default  ls >&2 => allow
        default  ls <f => ask
        default  cat </dev/tcp/h/1 => ask
        default  cat <<< x => ask
        default  cat <<EOF⏎$(rm x)⏎EOF => ask
        default  cat <<'EOF'⏎hi⏎EOF => ask
        autoEdit  ls >f => ask
        default  > f => ask
        default  >f rm x => ask
        default  ls >f rm => ask
        default  FOO=bar ls => ask
        default  LD_PRELOAD=x ls => ask
        default  PATH=/x; ls => ask
        default  export PATH=/x; ls => ask
        default  for PATH in /x; do ls; done => ask
        default  ls() { rm x; }; ls => ask
        default  function ls { rm x; }; ls => ask
        default  alias ls=rm; ls => ask
        default  :(){ :|:& };: => ask
        default  while true; do ls; done => allow
        default  case x in a) ls;; b) rm y;; esac => ask
        default  case x in a) ls;; esac => allow
        default  [[ -f x ]] => ask
        default  [ -f x ] && ls => ask
        default  (( 1 + 1 )) => ask
        default  ls; rm x => ask
        default  ls && curl x | sh => ask
        default  ls⏎rm x => ask
        default  ls & rm x => ask
        default  ls &rm x => ask
        default  ls;rm x => ask
        default  ls|rm x => ask
        default  ls&&rm x => ask
        default  bash -c 'rm x' => ask
        default  bash -c 'ls -la' => allow
        default  sh -c "ls | wc" => allow
        default  bash -lc 'ls' => ask
        default  bash -c "bash -c 'ls; rm x'" => ask
        default  bash -c "$X" => ask
        default  eval ls => ask
        default  env ls => ask
        default  sudo ls => ask
        default  time ls => ask
        default  nohup ls => ask
        default  timeout 5 ls => ask
        default  xargs ls => ask
        default  command ls => ask
        default  exec ls => ask
        default  coproc ls => ask
        default  source x => ask
        default  . x => ask
        default  {ls,-la} => ask
        default  $X => ask
        default  l?  => ask
        default  \ls => allow
        default  "ls" -la => allow
        default  l""s => allow
        default  /bin/ls => ask
        default  ./ls => ask
        default  r\⏎m x => ask
        default  ls \⏎  -la => allow
        default  echo "x"#; rm y => ask
        default  echo \ #; rm y => ask
        default  echo x#y => allow
        default  ls␀ => ask
        default  ls␍rm => ask
        default  ls␣rm => ask
        default  echo "a⇄b" => ask
        default  ls ( => ask
        default  ls "x => ask
        default  ls 'x => ask
        default  ls && => ask
        default  ls &&& rm x => ask
        default  `echo ls` => ask
        default  $(echo ls) => ask
        default  echo `ls # `; rm x => ask
        default  cat a | tee b => ask
        default  find . -name '*.rs' => allow
        default  find . -name *.rs => ask
        default  find . -delete => ask
        default  find . -exec rm {} \; => ask
        default  find . -execdir rm {} + => ask
        default  find . -ok rm {} \; => ask
        default  find . -fls x => ask
        default  find . -fprintf x y => ask
        default  find . "-delete" => ask
        default  find . -del''ete => ask
        default  git status => allow
        default  git status -s => allow
        default  git log --oneline -5 => allow
        default  git log -p -- src => allow
        default  git --no-pager diff => allow
        default  git log --output=x => ask
        default  git log --outp=x => ask
        default  git log --output x => ask
        default  git diff --ext-diff => ask
        default  git diff --ext => ask
        default  git show --textconv => ask
        default  git -c core.pager=x log => ask
        default  git -C /tmp status => ask
        default  git -p log => ask
        default  git --paginate log => ask
        default  git --config-env=a=b log => ask
        default  git log --format=%G? => ask
        default  git log --format=%+G? => ask
        default  git show HEAD:.env => ask
        default  git branch => allow
        default  git branch -a => allow
        default  git branch --list 'x*' => allow
        default  git branch x => ask
        default  git branch -D x => ask
        default  git branch -v x => ask
        default  git branch --contains HEAD => allow
        default  git commit -m x => ask
        default  git push => ask
        default  sed -n 1,5p f => allow
        default  sed -n 5p f => allow
        default  sed -n '1,$p' f => allow
        default  sed -i s/a/b/ f => ask
        default  sed -n 1p f -i => ask
        default  sed -n '1e rm' f => ask
        default  sed -n 'w x' f => ask
        default  sort f => allow
        default  sort -rn f => allow
        default  sort -k2,2 f => allow
        default  sort -o x f => ask
        default  sort -uo x f => ask
        default  sort --output=x f => ask
        default  sort --compress-program=sh f => ask
        default  uniq -c => allow
        default  uniq a => allow
        default  uniq a b => ask
        default  uniq - b => ask
        default  uniq a* => ask
        default  uniq a -- -x/../b => ask
        default  base64 f => allow
        default  base64 -o x f => ask
        default  base64 -do x f => ask
        default  rg x => ask
        default  /usr/bin/rg x => allow
        default  /usr/bin/rg --pre sh x => ask
        default  /usr/bin/rg -iz x => ask
        default  /tmp/rg x => ask
        default  cat /etc/hosts => allow
        default  cat ~/.ssh/id_rsa => ask
        default  cat ~/.s*/id_rsa => ask
        default  cat /root/.aws/credentials => ask
        default  cat .env => ask
        default  cat .env.local => ask
        default  cat .e* => ask
        default  cat .[e]nv => ask
        default  cat "$HOME/.ssh/x" => ask
        default  grep -f.env x => ask
        default  grep --file=.env x => ask
        default  cat /proc/self/environ => ask
        default  cat /proc/*/environ => ask
        default  cd /proc/self && cat environ => ask
        default  cat /proc/cpuinfo => allow
        default  cat /dev/sda => ask
        default  cat /./proc/self/env* => ask
        default  cat //proc/1/env* => ask
        default  cat ../../../proc/[0-9]*/env* => ask
        default  cat /*/self/env* => ask
        default  cat /[p]roc/1/maps => ask
        default  cat ~/../../proc/1/maps => ask
        default  grep x -f/proc/1/maps => ask
        default  cd / && cat proc/1/env* => ask
        default  cd ../.. && cat proc/1/maps => ask
        default  cd / && cd proc && cat 1/maps => ask
        default  cat src/proc/a dev/b sys/* => allow
        default  cd src && cat proc/a => allow
        default  grep -r key / => ask
        default  grep -rs key ~ => ask
        default  grep -r key ~u/ /x/y/z => ask
        default  grep -R key /home/u => ask
        default  grep -repat / => ask
        default  grep -r -e pat / => ask
        default  grep --recursive key .. => ask
        default  grep -d recurse key /root => ask
        default  cd && grep -r key . => ask
        default  cd / && grep -r key home => ask
        default  cd ~ && grep -r key . => ask
        default  /usr/bin/rg -uu key / => ask
        default  grep -rn /api src => allow
        default  grep -rn key . => allow
        default  grep -rn key /w/project => allow
        default  cd /w/project && grep -rn key src => allow
        default  grep root /etc/passwd => allow
        default  cat *.rs => allow
        default  cat /etc/shadow => ask
        default  head -5 a && tail -5 b => allow
        default  wc -l a b => allow
        default  stat a => allow
        default  awk 'BEGIN{system("rm x")}' => ask
        default  python -c 'x' => ask
        default  ssh -o ProxyCommand=x h => ask
        default  curl x => ask
        default  cat <<EOF; rm x⏎EOF => ask
        default  cat <<E"O"F⏎x⏎EOF⏎rm x => ask
        "##,
    );
    assert!(count > 180, "{count}");
}

#[test]
fn denied_prefixes() {
    check(
        &rules(&rule("deny", "commandPrefix=['rm', 'git push']")),
        &[],
        r##"
        default  rm x => deny
        yolo  rm x => deny
        yolo!  rm x => deny
        default  ls; rm x => deny
        yolo  ls; rm x => deny
        yolo  echo "$(rm x)" => deny
        yolo  echo `rm x` => deny
        yolo  cat <(rm x) => deny
        yolo  tee >(rm x) => deny
        yolo  bash -c 'rm x' => deny
        yolo  sh -lc "ls; rm x" => deny
        yolo  bash -c "sh -c 'rm x'" => deny
        yolo  env A=b rm x => deny
        yolo  env -i -u X rm x => deny
        yolo  env -S 'rm x' => deny
        yolo  env --split-string='rm x' => deny
        yolo  sudo -u bob rm x => deny
        yolo  sudo --made-up bob rm x => deny
        yolo  xargs -n 1 rm => deny
        yolo  ls | xargs rm -f => deny
        yolo  time -p rm x => deny
        yolo  nohup nice -n 5 rm x => deny
        yolo  timeout -k 5 10 rm x => deny
        yolo  exec rm x => deny
        yolo  command rm x => deny
        yolo  eval 'rm x' => deny
        yolo  eval "$X" => deny
        yolo  find . -exec rm {} \; => deny
        yolo  find . -exec echo {} \; -exec rm {} + => deny
        yolo  find . -exec sh -c 'rm x' \; => deny
        yolo  \rm x => deny
        yolo  r''m x => deny
        yolo  "rm" x => deny
        yolo  /bin/rm x => deny
        yolo  RM x => deny
        yolo  $'rm' x => deny
        yolo  $'\x72m' x => deny
        yolo  $X x => deny
        yolo  r? x => deny
        yolo  {rm,x} => deny
        yolo  A=1 rm x => deny
        yolo  f() { rm x; }; f => deny
        yolo  if true; then rm x; fi => deny
        yolo  for i in a; do rm $i; done => deny
        yolo  while rm x; do ls; done => deny
        yolo  case a in a) rm x;; esac => deny
        yolo  ! rm x => deny
        yolo  (rm x) => deny
        yolo  { rm x; } => deny
        yolo  ls && (cd a; rm x) => deny
        yolo  cat <<EOF⏎$(rm x)⏎EOF => deny
        yolo  cat <<'EOF'⏎rm x⏎EOF => allow
        yolo  [[ -n $(rm x) ]] => deny
        yolo  echo $(( $(rm x) )) => deny
        yolo  export A=$(rm x) => deny
        yolo  A=$(rm x) => deny
        yolo  coproc rm x => deny
        yolo  time A=b rm x => deny
        yolo  1A=b ls => deny
        yolo  [] ls => deny
        yolo  A=$ rm x => deny
        yolo  0<<< a rm x => deny
        yolo  cat a >f => allow
        yolo  time rm<<'EOF'⏎x⏎EOF => deny
        yolo  time -rm<<'EOF'⏎x⏎EOF => deny
        yolo  make x <<'EOF' && rm x | cat⏎y⏎EOF => deny
        yolo  git commit -F x <<'EOF' && git log⏎y⏎EOF => allow
        yolo  a\ \⏎b => deny
        yolo  time ! rm x => deny
        yolo  echo x | sh => deny
        yolo  git push => deny
        yolo  git -C x push => deny
        yolo  git -c a=b --no-pager push => deny
        yolo  git $X => deny
        yolo  git pushy => allow
        yolo  git log => allow
        yolo  rmdir x => ask
        yolo  echo rm x => allow
        yolo  echo "rm x" => allow
        yolo  cargo build && ls >f => allow
        yolo  ls ( => deny
        yolo  r\⏎m x => deny
        default  ls ( => ask
        default  $X => ask
        default  ls => allow
        default!  ls => deny
        "##,
    );
}

#[test]
fn allowed_prefixes() {
    let toml = rule("allow", "commandPrefix=['echo', 'git commit', 'cargo', 'rm', 'xargs']");
    check(
        &rules(&toml),
        &[],
        r##"
        default  echo a => allow
        default!  echo a => allow
        default  echo $HOME => allow
        default  echo a && ls => allow
        default!  echo a && ls => deny
        default  echo a > f => ask
        autoEdit  echo a > f => allow
        autoEdit  echo a > ../f => ask
        autoEdit  echo a > .git/hooks/x => ask
        autoEdit  echo a > ~/.bashrc => ask
        autoEdit  cd x && echo a > f => ask
        default  echo a > /dev/null => allow
        default  echo a > /dev/sda => ask
        default  echo a && make => ask
        default  echo a | sh => ask
        default  echo $(make) => ask
        default  echo `make` => ask
        default  echo $(echo a) => allow
        default  echo <(make) => ask
        default  echo a & make => ask
        default  echo a⏎make => ask
        default  echomake => ask
        default  /tmp/echo a => ask
        default  ECHO a => ask
        default  git commit -m 'a; b' => allow
        default  git -c x=y commit => ask
        default  git push => ask
        default  cd sub && cargo test => allow
        default  cd /tmp && cargo test => ask
        default  cd .. && cargo test => ask
        default  rm x => allow
        default  rm -rf x => ask
        default  rm x -fr => ask
        default  rm --recursive x => ask
        yolo  rm -rf x => ask
        default  xargs cargo => allow
        default  xargs make => ask
        default  env cargo build => ask
        default  bash -c 'cargo build' => allow
        default  bash -c 'cargo build; make' => ask
        default  sudo cargo build => ask
        default  cargo build <<EOF⏎x⏎EOF => allow
        default  FOO=1 cargo build => allow
        "##,
    );
    check(
        &rules(&rule("allow", "commandPrefix='echo'\nallowRedirection=true")),
        &[],
        "default  echo a > f => allow\ndefault  echo a > /dev/sda => ask\ndefault  echo a > f; ls => ask",
    );
    check(
        &rules(&rule("allow", "commandRegex='cargo (build|test)( |$)'")),
        &[],
        "default  cargo build => allow\ndefault  cargo builds => ask\ndefault  xcargo build => ask
        default  cargo test -q && make => ask\ndefault  make cargo build => ask",
    );
    check(
        &rules(&rule("ask_user", "commandPrefix='ls'")),
        &[],
        "default  ls => ask\nyolo  ls => ask\nyolo  pwd => allow\nyolo  ls ( => ask\ndefault  pwd => allow",
    );
    check(
        &rules(&rule("deny", "argsPattern='secret'")),
        &[],
        "default  cat secret => deny\nyolo  cat secret ( => deny\ndefault  cat x => allow\nyolo  cat ( => deny",
    );
    check(
        &rules(&rule("allow", "")),
        &[],
        "default  make => allow\ndefault  rm -rf x => ask\ndefault  make > f => ask",
    );
    check(
        &rules(&rule("allow", "")),
        &[],
        "default  make ( => ask\ndefault  git push -f => ask\ndefault  git reset --hard => ask",
    );
    check(
        &rules(&rule("allow", "")),
        &[],
        "default  git clean -fd => ask\ndefault  chmod -R 7 x => ask\ndefault  dd if=a => ask",
    );
}

#[test]
fn sessions_grants() {
    let grants = [Grant::Commands { prefixes: vec!["git commit".to_owned(), "cargo build".to_owned()] }];
    check(
        &rules(&rule("deny", "commandPrefix='git commit --amend'")),
        &grants,
        r##"
        default  git commit -m x => allow
        default!  git commit -m x => deny
        default  git add . => ask
        default  git push => ask
        default  git commit -m x && cargo build => allow
        default  git commit -m x | tail -3 => allow
        default  git commit -m x 2>&1 => allow
        default  git commit -m x > f => ask
        default  git commit -m "$(date)" => ask
        default  git commit -m x && make => ask
        default  A=b cargo build => ask
        default  env cargo build => ask
        default  git commit --amend => deny
        default  cargo buildx => ask
        "##,
    );
    let offered = |command: &str| match shell(&rules(""), Mode::Default, true, command, &[]).grant {
        Some(Grant::Commands { prefixes }) => prefixes.join(", "),
        None => "-".to_owned(),
        it => format!("{it:?}"),
    };
    let table = "
        git commit -m x => git commit
        cargo build --release => cargo build
        npm run test => npm run
        make => make
        git add . && git commit => git add, git commit
        git add . && ls => git add
        cargo build 2>&1 | tail => cargo build
        cd /x && cargo test => cd /x, cargo test
        rustc x.rs => rustc
        python3 x.py => python3 x.py
        python3 -c x => -
        ls => -
        rm x => -
        rm -rf x => -
        sudo make => -
        make > f => -
        make $(ls) => -
        make ( => -
        A=b make => -
        env make => -
        git -C x commit => -
        echo x | sh => -
        git push --force => -
        curl x => -";
    for line in table.lines().map(str::trim).filter(|it| !it.is_empty()) {
        let (command, want) = line.split_once(" => ").unwrap();
        assert_eq!(offered(command), want, "{line}");
    }
    assert_eq!(command_prefixes("git log | wc -l"), Some(vec!["git log".to_owned(), "wc".to_owned()]));
    assert_eq!(command_prefixes("bash -c 'git log'"), Some(vec!["git log".to_owned()]));
    assert_eq!(command_prefixes("ls ("), None);
}

#[test]
fn large_ones() {
    let rules = rules(&rule("deny", "commandPrefix='rm'"));
    let decision = |mode, command: &str| shell(&rules, mode, true, command, &[]).decision;
    for separator in ["; ", " && ", " | ", "\n"] {
        let many = vec!["ls"; 10_000].join(separator);
        assert_eq!(decision(Mode::Default, &many), Decision::Allow);
        assert_eq!(decision(Mode::Yolo, &format!("{many}{separator}rm x")), Decision::Deny, "{separator:?}");
        assert_eq!(decision(Mode::Default, &format!("{many}{separator}rm x")), Decision::Deny, "{separator:?}");
    }
    // Debug builds are ten times slower than the 50 ms that a release build may take.
    let many = vec!["ls"; 10_000].join(";");
    let start = std::time::Instant::now();
    assert_eq!(decision(Mode::Default, &format!("{many};rm x")), Decision::Deny);
    assert!(start.elapsed().as_millis() < 2_000, "{:?}", start.elapsed());
    let huge = format!("ls {}", "x".repeat(70_000));
    assert_eq!(decision(Mode::Default, &huge), Decision::Ask);
    assert_eq!(decision(Mode::Yolo, &huge), Decision::Deny);
    let deep = |open: &str, close: &str| format!("{}ls{}", open.repeat(3000), close.repeat(3000));
    assert_ne!(decision(Mode::Default, &deep("$(", ")")), Decision::Allow);
    assert_eq!(decision(Mode::Yolo, &deep("$(", ")")), Decision::Deny);
    _ = decision(Mode::Yolo, &deep("( ", ")"));
    _ = decision(Mode::Yolo, &"(".repeat(60_000));
    _ = decision(Mode::Yolo, &"`".repeat(60_000));
    _ = decision(Mode::Yolo, &"<<a ".repeat(9_000));
}

#[test]
fn another_folder_is_like_a_cd() {
    for (dir, command, want) in [
        (json!("sub"), "ls", Decision::Allow),
        (json!("sub"), "git status", Decision::Ask),
        (json!("sub"), "bash -c 'git log'", Decision::Ask),
        (json!("."), "git status", Decision::Allow),
        (json!(null), "git status", Decision::Allow),
        (json!(".ssh"), "cat id", Decision::Ask),
        (json!("/w/.git"), "cat config", Decision::Allow),
    ] {
        let args = json!({ "command": command, "dir_path": dir });
        let targets = Targets { command: Some(command.to_owned()), ..Targets::default() };
        let (kind, mode) = (ToolKind::Execute, Mode::Default);
        let query = Query {
            tool: "run_shell_command",
            kind,
            args: &args,
            targets: &targets,
            mode,
            interactive: true,
            grants: &[],
            roots: &[],
            server: None,
            annotations: None,
            subagent: None,
        };
        assert_eq!(decide(&rules(""), &query).decision, want, "{args}");
    }
}
