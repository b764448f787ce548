# Nix: callPackage this file; packaging/build fills in version, address, and the systems that have an archive.
{ lib, stdenv, fetchurl, autoPatchelfHook, installShellFiles }:
let
  version = "@version@";
  archives = {
@systems@
  };
  archive = archives.${stdenv.hostPlatform.system};
in
stdenv.mkDerivation {
  pname = "castor";
  inherit version;
  src = fetchurl {
    url = "@url@/castor-${version}-${archive.target}.tar.gz";
    inherit (archive) sha256;
  };
  sourceRoot = ".";
  nativeBuildInputs = [ installShellFiles ] ++ lib.optional stdenv.hostPlatform.isLinux autoPatchelfHook;
  buildInputs = lib.optional stdenv.hostPlatform.isLinux stdenv.cc.cc.lib;
  installPhase = ''
    install -D castor $out/bin/castor
    installManPage man/man1/*
    installShellCompletion completions/castor.bash completions/_castor completions/castor.fish
  '';
  meta = {
    description = "Coding agent for your editor, your scripts and your terminal";
    license = lib.licenses.asl20;
    mainProgram = "castor";
    platforms = builtins.attrNames archives;
  };
}
