"""A server of one package for npm, pip, cargo, go and git, over TLS under any name: FOLDER CERT KEY. Prints its port."""
import hashlib, http.server, io, json, os, ssl, subprocess, sys, tarfile, zipfile

FOLDER, CERT, KEY = sys.argv[1:4]
os.makedirs(FOLDER, exist_ok=True)


def archive(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()


NPM = archive({"package/package.json": '{"name":"leftish","version":"1.0.0"}', "package/index.js": "module.exports = 'NPM'\n"})
CRATE = archive({
    "leftish-1.0.0/Cargo.toml": '[package]\nname = "leftish"\nversion = "1.0.0"\nedition = "2021"\n',
    "leftish-1.0.0/src/lib.rs": 'pub const SAYS: &str = "CARGO";\n',
})
WHEEL = io.BytesIO()
with zipfile.ZipFile(WHEEL, "w") as zipped:
    zipped.writestr("leftish.py", "SAYS = 'PIP'\n")
    zipped.writestr("leftish-1.0.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: leftish\nVersion: 1.0.0\n")
    zipped.writestr("leftish-1.0.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    zipped.writestr("leftish-1.0.0.dist-info/RECORD", "leftish.py,,\n")
MODULE = io.BytesIO()
with zipfile.ZipFile(MODULE, "w") as zipped:
    zipped.writestr("leftish.test/leftish@v1.0.0/go.mod", "module leftish.test/leftish\n")
    zipped.writestr("leftish.test/leftish@v1.0.0/leftish.go", 'package leftish\n\nconst Says = "GO"\n')
GIT = ["git", "-C", FOLDER, "-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
for line in (["init", "-q", "work"], ["-C", "work", "commit", "-q", "--allow-empty", "-m", "GIT"], ["clone", "-q", "--bare", "work", "r.git"],
             ["-C", "r.git", "update-server-info"]):
    subprocess.run(GIT + line, check=True)


class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, *args):
        super().__init__(*args, directory=FOLDER)

    def do_GET(self):
        here, path = "https://" + self.headers["Host"], self.path.split("?")[0]
        known = {
            "/npm/leftish": json.dumps({"name": "leftish", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {
                "name": "leftish", "version": "1.0.0", "dist": {"tarball": here + "/npm/leftish-1.0.0.tgz",
                "shasum": hashlib.sha1(NPM).hexdigest()}}}}).encode(),
            "/npm/leftish-1.0.0.tgz": NPM,
            "/pip/leftish/": b'<a href="/pip/leftish-1.0.0-py3-none-any.whl">leftish-1.0.0-py3-none-any.whl</a>',
            "/pip/leftish-1.0.0-py3-none-any.whl": WHEEL.getvalue(),
            "/cargo/config.json": json.dumps({"dl": here + "/cargo/dl"}).encode(),
            "/cargo/le/ft/leftish": json.dumps({"name": "leftish", "vers": "1.0.0", "deps": [], "features": {}, "yanked": False,
                                                "cksum": hashlib.sha256(CRATE).hexdigest()}).encode(),
            "/go/leftish.test/leftish/@v/list": b"v1.0.0\n",
            "/go/leftish.test/leftish/@v/v1.0.0.info": b'{"Version":"v1.0.0","Time":"2026-01-01T00:00:00Z"}',
            "/go/leftish.test/leftish/@v/v1.0.0.mod": b"module leftish.test/leftish\n",
            "/go/leftish.test/leftish/@v/v1.0.0.zip": MODULE.getvalue(),
            "/cargo/dl/leftish/1.0.0/download": CRATE,
        }.get(path)
        if known is None:
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Type", "text/html" if path.endswith("/") else "application/octet-stream")
        self.send_header("Content-Length", str(len(known)))
        self.end_headers()
        self.wfile.write(known)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(CERT, KEY)
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
