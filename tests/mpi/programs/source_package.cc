#include "tests/mpi/programs/source_package.h"

#include <stdlib.h>

#include <filesystem>
#include <utility>

namespace ferry::mpi {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kFetchLimitS = 90;

// Leaves nothing outside its working directory. $1 is the package.
constexpr char kFetch[] = R"sh(
set -euo pipefail
source /etc/os-release
mkdir -p apt/state/lists/partial apt/cache/archives/partial source
echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
  "http://deb.debian.org/debian ${VERSION_CODENAME:-stable} main" >apt/sources.list
options=(-qq -o "Dir::Etc::sourcelist=$PWD/apt/sources.list" -o Dir::Etc::sourceparts=-
  -o "Dir::State=$PWD/apt/state" -o Dir::State::status=/var/lib/dpkg/status
  -o "Dir::Cache=$PWD/apt/cache" -o "APT::Sandbox::User=$(id -un)"
  -o Acquire::http::Timeout=15 -o Acquire::Retries=1)
apt-get "${options[@]}" update
apt-get "${options[@]}" source --download-only --tar-only "$package"
tar -xf *.orig.tar.* -C source --strip-components=1
)sh";

bool IsThere(const std::string& tool) {
  return fs::exists("/usr/bin/" + tool) || fs::exists("/bin/" + tool);
}

}  // namespace

SourcePackageTest::SourcePackageTest() { EXPECT_NE(mkdtemp(folder_.data()), nullptr); }

SourcePackageTest::~SourcePackageTest() { fs::remove_all(folder_); }

e2e::CommandResult SourcePackageTest::Bash(const std::string& folder, const std::string& script,
                                           unsigned limit_s) const {
  const std::string here = fs::current_path();
  e2e::Command command({"/bin/bash", "-c", "cd '" + folder + "'\n" + script},
                       {"FERRYCC=" + here + "/tools/wrappers/ferrycc",
                        "FERRYRUN=" + here + "/tools/ferryrun/ferryrun"},
                       "", limit_s);
  return command.Wait();
}

bool SourcePackageTest::Fetch(const std::string& package) {
  for (const char* tool : {"apt-get", "bash", "tar", "xz", "cc", "make"}) {
    if (!IsThere(tool)) {
      why_not_ = std::string("there is no ") + tool;
      return false;
    }
  }
  const e2e::CommandResult result =
      Bash(folder_, "package='" + package + "'" + kFetch, kFetchLimitS);
  if (result.exit_code != 0) {
    why_not_ = "the source of " + package + " cannot be had from Debian:\n" + result.err;
    return false;
  }
  return true;
}

bool SourcePackageTest::HasLibrary(const std::string& name) const {
  const std::string link = "cc -x c -shared -o library.so /dev/null -l" + name;
  return Bash(folder_, link, kFetchLimitS).exit_code == 0;
}

std::string SourcePackageTest::Run(const std::string& script, unsigned limit_s) const {
  const e2e::CommandResult result = Bash(source(), "set -euo pipefail\n" + script, limit_s);
  EXPECT_EQ(result.exit_code, 0) << script << "\n" << result.out << result.err;
  return result.out;
}

void SourcePackageTest::ExpectOfFerry(const std::string& program) const {
  const std::string libraries = Run("ldd '" + program + "' | grep -i mpi");
  EXPECT_NE(libraries.find("libmpi_abi.so"), libraries.npos) << libraries;
}

std::string SourcePackageTest::RunRanks(const std::vector<std::string>& placement,
                                        const std::vector<std::string>& program,
                                        unsigned limit_s) const {
  std::string script = "exec \"$FERRYRUN\" --private --no-label";
  for (const auto* words : {&placement, &program}) {
    for (const std::string& word : *words) {
      script += " '" + word + "'";
    }
  }
  return Run(script + " 2>&1", limit_s);
}

}  // namespace ferry::mpi
