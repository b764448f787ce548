# Homebrew's formula; packaging/build fills in version, address and checksums.
class Castor < Formula
  desc "Coding agent for your editor, your scripts and your terminal"
  homepage "@url@"
  version "@version@"
  license "Apache-2.0"

  on_macos do
    on_arm do
      url "@url@/castor-@version@-aarch64-apple-darwin.tar.gz"
      sha256 "@sha256:aarch64-apple-darwin@"
    end
    on_intel do
      url "@url@/castor-@version@-x86_64-apple-darwin.tar.gz"
      sha256 "@sha256:x86_64-apple-darwin@"
    end
  end
  on_linux do
    on_arm do
      url "@url@/castor-@version@-aarch64-unknown-linux-gnu.tar.gz"
      sha256 "@sha256:aarch64-unknown-linux-gnu@"
    end
    on_intel do
      url "@url@/castor-@version@-x86_64-unknown-linux-gnu.tar.gz"
      sha256 "@sha256:x86_64-unknown-linux-gnu@"
    end
  end

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
