//! Ways around, by what they use; and beside each of them what people type all day and nobody is asked about.

use super::*;

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
        nvme format /dev/nvme0 | btrfs subvolume delete x";
    let table: String = table.replace(" | ", "\n");
    check_in_yolo(Decision::Ask, &table);
    let table = "
        docker compose -f x.yml down | docker build -t x . | docker pull x | gh pr merge 1 | gh pr view 1 | gh pr close 1
        firebase emulators:start | vercel dev | wrangler dev | supabase start | cdk diff | pulumi up | kubectl scale --replicas=3 x
        kubectl rollout status x | helm upgrade --install x y | minikube start | mongosh --eval 'db.users.find()'
        redis-cli get x | duckdb x -c 'select 1' | mysqladmin status | pg_restore -d x y | rails db:migrate | rails db:setup
        python manage.py migrate | php artisan migrate | npx prisma migrate dev | mix ecto.migrate | sqlx migrate run
        goreleaser release --snapshot | ./gradlew build | ./mvnw test | npm dist-tag ls | pkill -f 'node server.js' | pkill -u me node
        pm2 restart x | service x status | hg update | cmake --build build | python3 -m pytest";
    check_in_yolo(Decision::Allow, &table.replace(" | ", "\n"));
}
