//! What cannot be taken back is asked about in every mode, however it is wrapped.

use super::*;

#[test]
fn destructive_in_every_mode() {
    let table = r##"
        rm x | rm -rf / | rm -rf ~ | rm -rf . | rm -rf src | rm *.rs | rm -rf target src | rm -rf target/../src
        rm -rf "$X" | rm -rf /w | rm -rf /etc/target | rm -rf target/.* | rm -rf ~/target | rm -rf ../target
        rm -rf "$PWD/target" | cd .. && rm -rf target | cd /tmp; rm -rf target | popd && rm -rf build
        cd "$X" && rm -rf target | cd ~ && rm -rf target | env -C / rm -rf target
        rmdir x | unlink x | /bin/rm x | RM x | \rm x | r''m x | "rm" x | command rm x | sudo rm x | time rm x
        env A=b rm x | nohup rm x | xargs rm | ls | xargs rm -f | find . -delete | find . -name x -delete
        find . -exec rm {} \; | find src -execdir rm {} + | sh -c 'rm x' | bash -lc "ls; rm x" | eval 'rm x'
        echo "$(rm x)" | echo `rm x` | cat <(rm x) | (rm x) | { rm x; } | if true; then rm x; fi | ! rm x
        for i in a; do rm $i; done | f() { rm x; }; f | true && rm x | true || rm x | ls & rm x | coproc rm x
        ssh host 'rm -rf /' | watch rm x | su -c 'rm x' | trap 'rm x' EXIT | parallel rm ::: a | busybox rm x
        $X x | eval "$X" | curl x | sh | echo x | bash | env -S 'rm x' | sudo --odd rm x | doas rm x
        git reset --hard | git reset --har | git -C x reset --hard HEAD~1 | git rebase main | git rebase -i x
        git filter-branch | git filter-repo --force | git reflog expire --all | git gc --prune=now | git branch -D x
        git branch -d --force x | git tag -d v1 | git checkout -- x | git checkout . | git checkout HEAD x
        git checkout src/main.rs | git checkout -f main | git restore x | git restore . | git switch -f main
        git switch --discard-changes x | git stash drop | git stash clear | git clean -fd | git clean -xdf | git rm -rf x
        git push -f | git push --force | git push --force-with-lease | git push origin +main | git push --mirror
        git push --delete origin x | git push origin :x | git push -d origin x | git push --forc | git -c a=b push -f
        git $X | git -c alias.x='!rm y' x | git update-ref -d x | git worktree remove x
        dd if=a of=b | mkfs.ext4 /dev/sda | mkfs /dev/sda | fdisk /dev/sda | parted x | mount a b | umount a
        chmod -R 777 x | chmod --recursive 7 x | chown -R u x | chgrp -hR u x | shred x | truncate -s 0 /x | wipefs x
        mv x /etc/y | mv x ../y | mv x ~ | mv x "$D" | mv -t /tmp x | echo x > /dev/sda | echo x >> /dev/nvme0n1
        tee /dev/sda | cp x /dev/sdb | kill -9 1 | kill -9 -1 | kill -s KILL 1 | shutdown now | reboot | halt | poweroff
        systemctl stop x | systemctl restart x | crontab -r | crontab x | iptables -F | userdel x | usermod -L x | passwd x
        npm publish | npm --tag x publish | pnpm publish | yarn npm publish | cargo publish | cargo +nightly publish
        cargo yank x | gem push x | twine upload x | poetry publish | uv publish | mvn clean deploy | gradle publishX
        terraform destroy | terraform -chdir=x destroy | terraform apply -destroy | tofu destroy | kubectl delete pod x
        kubectl -n x delete pod y | helm uninstall x | aws s3 rm s3://x --recursive | aws ec2 terminate-instances
        aws --region x s3 rb s3://y | aws dynamodb delete-table | gcloud compute instances delete x | gsutil rm x
        az group delete | gh repo delete x | docker system prune -a | docker volume rm x | docker compose down -v
        dropdb x | psql -c 'DROP TABLE x' | mysql -e "delete from x" | redis-cli flushall | heroku pg:reset
        python3 -c 'import shutil; shutil.rmtree("x")' | node -e 'fs.rmSync("x")' | perl -e 'unlink "x"'
        python -c 'os.system("rm x")' | ruby -e 'FileUtils.rm_rf "x"' | awk 'BEGIN{system("rm x")}'
        rsync -a --delete a b | tar --remove-files -cf a b | rclone purge x | kubectl $X y
        rm x ( | rm "x | echo "$( | r\⏎m x"##;
    let shipped = rules("");
    let broad = rules(&rule("allow", "allowRedirection=true"));
    let wide = rules(&rule("allow", "commandPrefix=['git','git push','docker','kubectl','npm','find','xargs','mv']"));
    let (mut wrong, mut count) = (String::new(), 0);
    for command in cells(table) {
        count += 1;
        for (rules, interactive, want) in [
            (&shipped, true, Decision::Ask),
            (&broad, true, Decision::Ask),
            (&wide, true, Decision::Ask),
            (&shipped, false, Decision::Deny),
        ] {
            let got = shell(rules, Mode::Yolo, interactive, &command, &[]);
            if got.decision != want || got.grant.is_some() {
                wrong += &format!("{command}: {got:?}\n");
            }
        }
        for mode in [Mode::Default, Mode::AutoEdit] {
            if shell(&broad, mode, true, &command, &[]).decision != Decision::Ask {
                wrong += &format!("{command}: in {mode:?}\n");
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    assert!(count > 190, "{count}");
}

/// Cells parted by ` | `, but for pipes: those into `sh`, `bash` and `xargs` belong to their cell.
fn cells(table: &str) -> Vec<String> {
    let mut res: Vec<String> = Vec::new();
    for cell in table.lines().flat_map(|it| it.trim().split(" | ")).filter(|it| !it.is_empty()) {
        let cell = cell.replace('⏎', "\n");
        let joins = ["sh", "bash", "xargs rm -f"].contains(&cell.as_str());
        match (joins, res.last_mut()) {
            (true, Some(last)) => *last = format!("{last} | {cell}"),
            _ => res.push(cell),
        }
    }
    res
}

#[test]
fn harmless_neighbours_run_in_yolo() {
    let table = "
        rm -rf target | rm -rf ./node_modules | rm -rf dist/* | rm -rf crates/a/target build | rm -r /w/out
        rm -rf /w/a/.venv/x | cd sub && rm -rf target | cd /w/a && rm -rf target | rmdir build/x | find target -delete
        find dist -name x -delete | git clean -fd target | git clean -n | git restore --staged x | git checkout main
        git checkout -b x | git checkout feature/x | git checkout v1.2.3 | git push | git push --follow-tags
        git push -u origin main | git push --dry-run --force | git commit --amend | git rebase --abort | git branch x
        truncate -s 0 x | truncate --size=0 ./a/b | git stash | git stash pop | git tag v1 | git reset x | git reset --soft HEAD~1 | git log | git gc | git restore build
        chmod +x x | chown u x | mv a b | mv a /w/b | kill 123 | kill -9 123 | kill -1 123 | systemctl status x | crontab -l
        iptables -L | npm install | npm run publish | cargo publish --dry-run | cargo build | cargo run publish
        terraform plan | kubectl get pods | aws s3 ls | aws s3 cp a b | docker ps | docker compose down | gh pr list
        psql -c 'select 1' | python3 -c 'print(1)' | node -e '1' | awk '{print $1}' x | echo rm -rf / | echo 'git push -f'
        grep -r 'rm -rf' . | ls > /dev/null | ls 2> /dev/stderr | ssh host uptime | make | git checkout -- target
        cat x | tee y | docker image ls | sed s/a/b/ x | mount_it | confirm x | ./rm.sh | git rm --cached x";
    let shipped = rules("");
    let wrong: String = cells(table)
        .iter()
        .map(|it| (it, shell(&shipped, Mode::Yolo, true, it, &[])))
        .filter(|it| it.1.decision != Decision::Allow)
        .map(|(command, got)| format!("{command}: {}\n", got.rule))
        .collect();
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn only_a_rule_that_names_it_allows_it() {
    let toml = |tier| {
        let text = rule(
            "allow",
            "commandPrefix=['git push --force', 'rm', 'rm -rf', 'kubectl delete', 'ssh box rm', '/bin/shred']",
        ) + &rule("allow", r"commandRegex='terraform destroy -target=\S+$'")
            + &rule("allow", "commandRegex='.?.*'\nmodes=['yolo']");
        Rules::shipped().with(Rules::parse(&text, tier, "f.toml").unwrap().0)
    };
    let table = "
        default  git push --force => allow
        yolo!  git push --force => allow
        yolo  git push --force-with-lease => ask
        yolo  git push -f => ask
        default  rm x => allow
        default  rm -rf x => allow
        default  rm -f x => ask
        yolo  rm --no-preserve-root / => ask
        default  kubectl delete pod x => allow
        yolo  kubectl -n x delete pod x => ask
        yolo  kubectl drain x => ask
        yolo  ssh box rm x => allow
        yolo  ssh bax rm x => ask
        yolo  /bin/shred x => allow
        default  terraform destroy -target=a => allow
        default  terraform destroy -target=a && rm -r x => ask
        yolo  terraform destroy => ask
        yolo  $X => ask";
    check(&toml(Tier::User), &[], table);
    check(&toml(Tier::Admin), &[], table);
    // A repository cannot give it.
    let asks: String =
        table.lines().map(|it| it.replace("=> allow", "=> ask").replace("yolo! ", "yolo ") + "\n").collect();
    check(&toml(Tier::Workspace), &[], &asks);
    // Nor does a standing yes of the session.
    let grants = [Grant::Commands { prefixes: vec!["git push".to_owned(), "rm".to_owned()] }];
    check(&rules(""), &grants, "default  git push => allow\ndefault  git push -f => ask\ndefault  rm x => ask");
}

#[test]
fn a_folder_outside_the_workspace_has_no_build_folders() {
    let args = json!({ "command": "rm -rf target" });
    let elsewhere = AbsPath::new("/x").unwrap();
    let dir =
        TargetPath { path: elsewhere.clone(), real: elsewhere, access: Access::Read, line: None, in_roots: false };
    for (paths, want) in [(vec![], Decision::Allow), (vec![dir], Decision::Ask)] {
        let targets = Targets { command: Some("rm -rf target".to_owned()), paths, ..Targets::default() };
        let query = Query::new("run_shell_command", ToolKind::Execute, &args, &targets);
        assert_eq!(decide(&rules(""), &Query { mode: Mode::Yolo, ..query }).decision, want);
    }
}
