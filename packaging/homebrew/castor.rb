# Homebrew's formula; packaging/build fills in version, address, and the systems that have an archive.
class Castor < Formula
  desc "Coding agent for your editor, your scripts and your terminal"
  homepage "@url@"
  version "@version@"
  license "Apache-2.0"

@systems@

  def install
    bin.install "castor"
    generate_completions_from_executable(bin/"castor", "completions")
    system bin/"castor", "man", "--to", "man1"
    man1.install Dir["man1/*"]
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/castor --version")
  end
end
