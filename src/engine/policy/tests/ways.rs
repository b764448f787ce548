//! Ways around, by what they use; and beside each of them what people type all day and nobody is asked about.

use super::*;

#[test]
fn a_word_that_decides_may_be_computed() {
    let table = r##"
        git reset $(echo --hard)
        git reset "$(printf -- --hard)" HEAD~3
        git reset `echo --hard`
        git reset $(printf %s --hard)
        git reset $(printf '%s%s\n' --ha rd)
        git reset $(echo x | sed s/x/--hard/)
        git reset $(git rev-parse --hard)
        git reset --ha$(echo rd)
        git reset --$X
        git reset -$X
        git reset $(echo LS1oYXJk | base64 -d)
        git reset $(printf '\x2d-hard')
        git reset $(cat x)
        git reset $(<x)
        git reset "$(git show HEAD:x)"
        git reset $(git log -1 --format=%s)
        git reset {--hard,HEAD}
        git reset --har{d,d}
        git clean $(echo -fd)
        git clean "$(cat x)"
        git push $(echo --force)
        git push origin $(echo +main)
        git push origin "+$(git branch --show-current)"
        git push origin ":$B"
        git push origin $(cat x)
        git push "--f$X"
        git checkout $(echo .)
        git checkout $(cat x)
        git branch $(echo -D) main
        git tag $(echo -d) v1
        X=rd; git reset --ha$X
        X=hard; git reset --$X
        X=--hard; Y=$X; git reset $Y
        X=$(cat x); git reset $X
        X=$(echo --hard); git reset "$X"
        X=(--hard); git reset "${X[0]}"
        read X <<< --hard; git reset $X
        echo --hard | { read X; git reset $X; }
        printf -v X %s --hard; git reset $X
        f() { git reset $1; }; f --hard
        f() { git reset "${1}"; }; f --hard
        set -- --hard; git reset $1
        bash -c 'git reset $1' _ --hard
        bash -c "git reset \$0" --hard
        git reset ${X:---hard}
        git reset ${X:=--hard}
        git reset ${X:-$(echo --hard)}
        Y=--hard; git reset "${X:-$Y}"
        git reset ${X+--hard}
        git push ${FORCE:+--force} origin main
        git clean -${X}
        git restore -$X src
        for X in $(cat x); do git push origin $X; done
        F=src/main.rs; git checkout $F
        M=DELETE; curl -X $M https://h/x
        Q='drop table x'; psql -c "$Q"
        P=1; kill -9 $P
        find . $(echo -delete)
        gh repo $(echo delete) x
        aws s3 $(echo rb) s3://x
        cat $(echo .env)
        cat "$(printf .%s env)"
        cat `echo .env`
        git show HEAD:$(echo .env)"##;
    check_in_yolo(Decision::Ask, table);
    let table = r##"
        git checkout "$BRANCH"
        git checkout ${BRANCH:-main}
        git push origin "${BRANCH:-main}"
        bash -c 'git checkout "$1"' _ main
        git checkout $(git branch --show-current)
        git checkout -b fix-$(date +%s)
        git checkout -b "feature/$(cat name)"
        git push origin "$(git branch --show-current)"
        git push -u origin $(git rev-parse --abbrev-ref HEAD)
        git push origin "${BRANCH:-$(git branch --show-current)}"
        git push origin $(git branch | grep '\*' | cut -d' ' -f2)
        git push origin "v$(cat VERSION)"
        git push origin $(date +%F)
        git reset "$COMMIT"
        git reset $(git merge-base main HEAD)
        git reset --soft $(git log --format=%h -1 origin/main)
        git reset HEAD -- "$f"
        git tag "v$(cat VERSION)"
        git tag $(node -p 'require("./package.json").version')
        git tag v1 -m"$Done"
        git switch "$(gh pr view --json headRefName -q .headRefName)"
        git branch "$NEW"
        git checkout "$(git rev-list -n 1 --before=2020-01-01 main)"
        for b in main dev; do git checkout $b && make; done
        for b in $(git branch --format='%(refname:short)'); do git push origin "$b"; done
        B=main; git checkout $B && git push origin "$B"
        T=$(git describe --tags --abbrev=0); git checkout $T
        f() { git checkout "$1"; }; f main
        f() { echo "$1"; }; f --hard; git reset x
        chmod $(stat -c %a x) y
        kill $(lsof -ti:3000)
        cat $(echo src/a) $(git ls-files '*.rs')"##;
    check_in_yolo(Decision::Allow, table);
}

#[test]
fn commands_that_work_elsewhere_have_no_build_folders_there() {
    let table = r##"
        git -C .. clean -fd target
        git -C/x clean -fd target
        git -C ~/x checkout -- target
        git -C /x restore target
        git -C "$X" clean -fd target
        git --work-tree=/x clean -fdx target
        git --work-tree /x checkout -- target
        git --git-dir=../.git checkout -- target
        GIT_WORK_TREE=/x git clean -fdx target
        GIT_DIR=/x git clean -fdx target
        export GIT_WORK_TREE=/x; git clean -fdx target
        env GIT_WORK_TREE=/x git clean -fdx target
        CDPATH=/x cd out && rm -rf target
        CDPATH=/x; cd out && rm -rf target
        cd -P ../x && rm -rf target
        cd -- /x && rm -rf target
        cd -P && rm -rf target
        pushd .. && rm -rf target
        pnpm -C .. exec rm -rf dist
        npm --prefix /x exec -- rimraf dist
        sudo -D / rm -rf target"##;
    check_in_yolo(Decision::Ask, table);
    let table = r##"
        git -C sub clean -fd target
        git -C /w/sub checkout -- target
        git -C ../x pull && rm -rf target
        make -C ../x && rm -rf target
        tar xzf x.tgz -C /tmp/y && rm -rf target
        cd -P sub && rm -rf target
        cd -- sub && rm -rf target
        pushd sub && rm -rf target
        npx rimraf dist
        cmake -E rm -rf build
        git diff -C --stat"##;
    check_in_yolo(Decision::Allow, table);
}

#[test]
fn links_are_followed_from_wherever_a_command_works() {
    let dirs = |command: &str| super::super::words("run_shell_command", &json!({ "command": command })).dirs;
    assert_eq!(dirs("cd -P a && pushd -n b; cd -- c"), ["a", "b", "c"]);
    assert_eq!(dirs("git -C a show HEAD:x; git --work-tree=b diff; git -Cc log -C"), ["a", "b", "c"]);
    assert_eq!(dirs("make -C a; env -C b cat x; tar -C c -cf x .; npm --prefix d run x"), ["a", "b", "c", "d"]);
    assert_eq!(dirs("git log -C a; cargo rustc -- -C b; cat x"), Vec::<String>::new());
}

#[test]
fn forms_of_the_shell() {
    let table = r##"
        coproc X { rm -rf src; }
        coproc X { ls; git reset --hard; }
        bash /dev/stdin <<'E'⏎rm -rf src⏎E
        bash -x /dev/fd/0 <<< 'rm -rf src'
        bash -e <<< 'rm -rf src'
        bash -ec 'rm -rf src'
        bash -euo pipefail -c 'rm -rf src'
        bash -o posix x.sh <<< 'rm -rf src'
        bash -x <(echo rm -rf src)
        sh -xec "$X"
        shopt -s expand_aliases⏎alias x='git reset'⏎x --hard
        alias g=git; g push --force
        trap 'git reset --hard' EXIT
        trap -- 'rm -rf src' INT TERM
        trap "$X" EXIT
        a=(rm -rf src); "${a[@]}"
        a=(--hard); git reset "${a[@]}"
        x='$(rm src)'; echo "${x@P}"
        x=('$(rm src)'); echo "${x[@]@P}"
        echo "${@@P}"
        y=rm; x=y; ${!x} src
        echo "${!x}"
        git {x}>/dev/null reset --hard
        {x}>/dev/null git reset --hard
        git {x}<<<y push --force
        ansible all -a 'rm -rf /'
        tclsh <<< 'file delete -force src'"##;
    check_in_yolo(Decision::Ask, table);
    let table = r##"
        bash -n x.sh
        bash -x x.sh
        bash -e x.sh a
        bash -euo pipefail -c 'npm ci; npm test'
        bash -xc ls
        trap - EXIT
        trap '' INT
        trap 'echo done' EXIT; make
        T=$(mktemp); echo x > $T; cat $T; rm -f "$T"
        trap 'rm -rf "$T"' EXIT; T=$(mktemp -d); cp x "$T"
        echo "${a[@]}"
        a=(x y); for i in "${a[@]}"; do echo "$i"; done
        declare -A m; for k in "${!m[@]}"; do echo $k; done
        f() { echo "${@:2}" "${#@}" "${a[@]:1}" "${#a[@]}"; }; f x
        docker compose exec -T db psql -U x -c 'select 1'
        rm -rf .next .turbo .pytest_cache
        echo ${x}>f; echo "${x}">g; echo {x} >f; exec 3>f
        exec 3>&1; coproc cat"##;
    check_in_yolo(Decision::Allow, table);
    let table = r##"
        T=$(mktemp); T=src; rm -f "$T"
        T=$(mktemp); read T; rm -f "$T"
        T=$(mktemp); . ./x; rm -f "$T"
        T=$(mktemp)x; rm -f "$T"
        T=$(mktemp); rm -rf "$T"/*
        T=$(mktemp); rm -rf "$T" src
        T=$(mktemp; echo src); rm -rf $T
        mktemp() { echo src; }; T=$(mktemp); rm -rf $T
        PATH=.; T=$(mktemp); rm -rf $T
        T=a; T+=$(mktemp); rm -rf $T
        rm -rf "$T""##;
    check_in_yolo(Decision::Ask, table);
}

#[test]
fn what_destroys_elsewhere() {
    let table = "
        npx rimraf src | npm exec -- rimraf src | cmake -E rm -rf src | cmake -E remove_directory src
        docker-compose down -v | docker push x | docker buildx build --push . | gh pr close 1 -d | gh secret remove x
        glab repo delete x | firebase functions:delete x | vercel rm x | wrangler d1 delete x | supabase db reset
        cdk destroy | npx cdk destroy | sls remove | terragrunt run-all destroy | tofu apply -destroy | pulumi down
        kubectl replace --force -f x | kubectl scale --replicas=0 deploy/x | k delete pod x | helm del x
        minikube delete | kind delete cluster | vagrant destroy -f | virsh undefine x | s5cmd rm s3://x
        mongosh --eval 'db.dropDatabase()' | mongosh x --eval 'db.users.deleteMany({})' | redis-cli FlushAll
        sqlcmd -Q 'DROP DATABASE x' | duckdb x -c 'drop table y' | clickhouse-client -q 'DROP TABLE x' | mysqladmin drop x
        pg_restore --clean -d x y | rails db:drop | bundle exec rails db:reset | bin/rails db:drop | python manage.py flush
        ./manage.py flush | php artisan migrate:fresh | npx prisma migrate reset | npx prisma db push --force-reset
        mix ecto.drop | sqlx database drop | dotnet ef database drop | flyway clean | python3 -m twine upload dist/x
        npx lerna publish | npx semantic-release | changeset publish | goreleaser release | dart pub publish
        ./gradlew publish | ./mvnw deploy | sbt publish | npm dist-tag rm x latest | npm token revoke x
        pkill -9 . | pkill -u root | pm2 delete all | service x stop | hg strip x | svn revert -R .
        terraform apply -auto-approve | terraform -chdir=a apply --auto-approve x | tofu apply -auto-approve | pulumi up -y
        terragrunt run-all apply -auto-approve | pulumi up --yes -s a | gh pr merge 1 | gh -R a/b pr merge 1 --squash
        docker rm -f x | docker rm -fv x | docker container rm --force x | podman rm -f x | podman volume rm x
        helm uninstall x | kubectl -n a delete pod x | docker volume rm x | docker system prune
        nvme format /dev/nvme0 | btrfs subvolume delete x";
    let table: String = table.replace(" | ", "\n");
    check_in_yolo(Decision::Ask, &table);
    let table = "
        docker compose -f x.yml down | docker build -t x . | docker pull x | docker rm x | gh pr view 1 | gh pr close 1
        firebase emulators:start | vercel dev | wrangler dev | supabase start | cdk diff | pulumi up | terraform apply x | kubectl scale --replicas=3 x
        kubectl rollout status x | helm upgrade --install x y | minikube start | mongosh --eval 'db.users.find()'
        redis-cli get x | duckdb x -c 'select 1' | mysqladmin status | pg_restore -d x y | rails db:migrate | rails db:setup
        python manage.py migrate | php artisan migrate | npx prisma migrate dev | mix ecto.migrate | sqlx migrate run
        goreleaser release --snapshot | ./gradlew build | ./mvnw test | npm dist-tag ls | pkill -f 'node server.js' | pkill -u me node
        pm2 restart x | service x status | hg update | cmake --build build | python3 -m pytest";
    check_in_yolo(Decision::Allow, &table.replace(" | ", "\n"));
}

#[test]
fn secrets_in_what_git_keeps_and_in_scripts() {
    let table = r##"
        git show HEAD:.env
        git show :0:.env
        git cat-file -p HEAD:conf/.env.local
        git cat-file --batch <<< HEAD:.env
        echo HEAD:.env | git cat-file --batch
        printf '%s\n' HEAD:id_rsa | git cat-file --batch-command
        git log -p -- .env
        git log -U3 .env
        git log --word-diff .env
        git log --color-words -- .env
        git log -m -- .env
        git log -p -- ':(top).env'
        git log -p -- ':/.env'
        git log -p -- '.e*'
        git log -p -- '**/.env'
        git diff HEAD~1 -- '*.pem'
        git show HEAD -- '.en?'
        git grep KEY -- '.e*'
        git grep KEY -- '*.env'
        git grep KEY HEAD -- .env
        git diff HEAD~1:.env HEAD:.env
        git checkout HEAD~3 -- .env && cat .env
        git restore -s HEAD~3 .env
        git archive HEAD .env
        git stash show -p -- .env
        git show stash@{0}:.env
        git blame .env
        git checkout-index --temp .env
        rg KEY -g '.env*'
        rg KEY -g'**/.env*'
        sed 'r .env' /dev/null
        sed -n '$r .env' x
        sed 'w .env' x
        trap 'cat .env' EXIT
        watch 'cat .env'
        script -c 'cat .env' x
        tmux new 'cat .env'
        psql -c '\copy x from .env'
        gh auth token
        gh auth status -t
        aws configure get aws_secret_access_key
        aws ssm get-parameter --name x --with-decryption
        kubectl get secret x -o yaml
        kubectl -n x get secret/y --output=json
        kubectl config view --raw
        pass show x
        vault kv get x
        git credential fill
        gpg --armor --export-secret-keys
        echo "$(gh auth token)"
        git config core.hooksPath x
        git config --global core.pager 'less; x'
        git config set core.sshCommand x
        git config --file x filter.y.clean z
        git config credential.helper '!x'"##;
    check_in_yolo(Decision::Ask, table);
    let table = r##"
        git log -- .env
        git log --stat -p -- src
        git log --oneline -S KEY
        git show HEAD:src/main.rs
        git show HEAD --stat -- '*.rs'
        git grep -n '\.env'
        git grep foo -- '*.json' ':!.env'
        git diff -- . ':(exclude).env'
        git cat-file -p HEAD:src/a
        echo HEAD:src/a | git cat-file --batch
        grep -rn '\.env' src
        grep -rn ".env" --include='*.ts' src
        rg -n 'process\.env|\.env' src
        rg foo -g '!.env' -g '*.rs'
        git commit -m 'read the .env file'
        sed -n '/a b/p' x
        trap 'kill $PID' EXIT; npm start & PID=$!; npm test
        kubectl get secrets
        kubectl get pods -o yaml
        gh auth status
        aws configure list
        aws ssm get-parameter --name x
        vault status
        git config user.name x
        git config --get core.hooksPath
        git config core.pager cat
        git config --unset core.hooksPath
        git config --list"##;
    check_in_yolo(Decision::Allow, table);
}

#[test]
fn a_search_hands_on_what_it_finds() {
    let secret = AbsPath::new("/w/.env").unwrap();
    let link = |path: &str| crate::base::tool::Lead {
        name: String::new(),
        path: AbsPath::new(path).unwrap(),
        real: secret.clone(),
        in_roots: true,
    };
    let (mut wrong, roots) = (String::new(), [AbsPath::new("/w").unwrap()]);
    let table = "
        find . -name '*.ts' -exec grep -l foo {} + => allow
        find . -name '*.ts' | xargs grep foo => allow
        find . -type f -name '*.ts' | sort | head -5 | xargs cat => allow
        grep -rl foo src | xargs sed -i s/a/b/ => allow
        rg -l foo | xargs sed -i s/a/b/ => allow
        rg foo -A3 => allow
        find . -name '.e*' -exec cat {} + => ask
        find . -type f -exec cat {} + => ask
        find . -not -name '*.ts' -exec cat {} + => ask
        find . -name '*.ts' -o -name '*v' | xargs cat => ask
        find . | xargs cat => ask
        ls -A | xargs cat => ask
        grep -rl foo . | xargs cat => ask
        rg -l --hidden foo | xargs cat => ask
        rg -L foo => ask
        xargs cat => ask";
    for line in table.lines().map(str::trim).filter(|it| !it.is_empty()) {
        let (command, want) = line.split_once(" => ").unwrap();
        let args = json!({ "command": command });
        let targets = Targets {
            command: Some(command.to_owned()),
            secrets: vec![secret.clone()],
            leads: vec![link("/w/docs/e")],
            ..Targets::default()
        };
        let query = Query::new("run_shell_command", ToolKind::Execute, &args, &targets);
        let got = decide(&rules(""), &Query { mode: Mode::Yolo, roots: &roots, ..query });
        if word(got.decision) != want {
            wrong += &format!("{line}: {}\n", got.rule);
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn what_is_denied_is_so_behind_options_and_in_odd_spellings() {
    let denies = rules(&rule(
        "deny",
        "commandPrefix=['kubectl delete', 'npm publish', 'docker compose down', 'git commit --amend', 'make deploy']",
    ));
    let table = "
        yolo  kubectl -n x delete pod y => deny
        yolo  kubectl --context=x delete pod y => deny
        yolo  npm --tag x publish => deny
        yolo  docker --context x compose -f y down => deny
        yolo  git commit -m x --amend => deny
        yolo  git commit -m x -- --amend => allow
        yolo  docker --context x compose down => deny
        yolo  make V=1 -s deploy => deny
        yolo  make V=1 => allow
        yolo  ed <<< '!npm publish' => deny
        yolo  echo '!npm publish' | ed -s => deny
        yolo  m4 <<< 'syscmd(npm publish)' => deny
        yolo  sqlite3 x <<< '.shell npm publish' => deny
        yolo  sqlite3 x <<< 'select 1' => allow
        yolo  psql <<< 'select 1 != 2' => allow
        yolo  ed -s x <<< 'p' => allow
        yolo  kubectl get pods => allow
        yolo  kubectl -n x get delete => allow
        yolo  npm run publish => allow";
    check(&denies, &[], table);
    let denies = rules(&rule("deny", r"commandRegex='git push\b.*'"));
    let table = r#"
        yolo  git push => deny
        yolo  git  push => deny
        yolo  git⇥push => deny
        yolo  g''it "push" => deny
        yolo  git  push "$X" => deny
        yolo  /usr/bin/git push => deny
        yolo  git -C x --no-pager push origin => deny
        yolo  git pull => allow
        yolo  git commit -m 'x' => allow"#;
    check(&denies, &[], table);
}

#[test]
fn options_behind_options_and_folders_behind_carriers() {
    let table = r##"
        bash -c -x 'rm -rf src'
        bash -c -- 'rm -rf src'
        bash -c -e -u 'rm -rf src' a
        eval -- 'rm -rf src'
        eval -- rm -rf src
        find -L node_modules -delete
        find node_modules -follow -delete
        find .. -name package.json -execdir rm -rf node_modules \;
        find /home/u -maxdepth 2 -execdir rm -rf target +
        docker run -v /:/h -w /h x rm -rf build
        docker exec x rm -rf build
        kubectl exec x -- rm -rf dist
        T=$(mktemp -d /x/y); : "${T:=src}"; rm -rf "$T"
        T=$(mktemp); mv src "$T"; rm -rf "$T"
        grep -r AKIA ~
        grep -rn AKIA "$HOME"
        grep -r AKIA /home/u/
        rg --hidden AKIA ~
        cp -r ~ x
        tar cf x /root
        rsync -a ~/ x/
        zip -r x $HOME
        find ~ -type f -exec cat {} +
        find / -type f | xargs cat"##;
    check_in_yolo(Decision::Ask, table);
    let table = r##"
        bash -c 'echo "$1"' _ -x
        eval -- ls
        find . -name package.json -execdir rm -rf node_modules \;
        docker compose exec web npm test && rm -rf target
        grep -r foo ~/work
        grep -r foo ../lib
        rg foo ~
        cp -r ~/work/x .
        cp -r x ~
        rsync -a x ~
        find ~ -name '*.rs'
        find ~/work -name '*.rs' | xargs cat"##;
    check_in_yolo(Decision::Allow, table);
}

#[test]
fn what_only_looks_as_if_it_deletes_is_told_as_such() {
    let why = |command| shell(&rules(""), Mode::Yolo, true, command, &[]).why;
    let said = |what: &str| Some(format!("destructive: {what} looks as if it deletes"));
    assert_eq!(why("/opt/b2 --profile x delete-file-version y"), said("b2 delete-file-version"));
    assert_eq!(why("foo sync --purge"), said("foo --purge"));
    assert_eq!(why("npx -y foo@5 users delete 5"), said("foo delete"));
    assert_eq!(why("rm -rf src"), Some("destructive: rm -rf".to_owned()));
    // As many carriers as fit cost no more than a few.
    let nested = "npx -a npx ".repeat(30);
    assert_eq!(why(&format!("{nested} foo delete")), None);
}
