// The Debian package, unpacked but not installed: bare_debian_test.cc installs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/e2e/command.h"
#include "tests/support/processes.h"

namespace ferry::e2e {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::Contains;
using testing::ContainsRegex;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::Not;

constexpr char kDeb[] = "packaging/deb/ferry.deb";

// Runs a line of shell; `$0` is the package.
CommandResult Shell(const std::string& line) { return RunCommand({"/bin/sh", "-c", line, kDeb}); }

// For a regular expression, as it is.
std::string Escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    escaped += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == ' ' ? "" : "[";
    escaped += c;
    escaped += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == ' ' ? "" : "]";
  }
  return escaped;
}

// The installed package of a file: some have other names in other releases of Debian.
std::string PackageOf(const std::string& pattern) {
  return Shell("dpkg-query -S '" + pattern + "' | head -n 1 | cut -d : -f 1 | tr -d '\\n'").out;
}

class DebTest : public testing::Test {
 protected:
  DebTest() {
    EXPECT_NE(mkdtemp(root_.data()), nullptr);
    const CommandResult unpacked = Shell("dpkg-deb -R \"$0\" " + root_);
    EXPECT_EQ(unpacked.exit_code, 0) << unpacked.err;
  }
  ~DebTest() override { fs::remove_all(root_); }

  std::string ReadFile(const std::string& path) const {
    std::string text = tests::ReadFile(root_ + "/" + path);
    EXPECT_FALSE(text.empty()) << path;
    return text;
  }

  std::string root_ = "/tmp/ferry-deb-XXXXXX";
};

TEST_F(DebTest, HoldsEveryPart) {
  for (const char* path : {"usr/sbin/ferryd",
                           "usr/bin/ferryctl",
                           "usr/bin/ferryrun",
                           "usr/lib/*/libferry.so",
                           "usr/lib/*/libferry.so.0",
                           "usr/lib/*/ferry/libferry_direct.so",
                           "usr/lib/*/ferry/libferry_direct_ofi.so",
                           "usr/lib/*/ferry/libferry_malloc.so",
                           "usr/lib/*/ferry/libferry_queues.so",
                           "usr/lib/*/ferry/mpich/libmpi.so",
                           "usr/lib/*/ferry/mpich/libmpi.so.12",
                           "usr/lib/*/ferry/mpich/libmpich.so.12",
                           "usr/lib/*/ferry/openmpi/libmpi.so.40",
                           "usr/lib/*/ferry/openmpi/libmpi_cxx.so.40",
                           "usr/lib/*/ferry/openmpi/libmpi_mpifh.so.40",
                           "usr/lib/*/ferry/openmpi/libmpi_usempi_ignore_tkr.so.40",
                           "usr/lib/*/ferry/openmpi/libmpi_usempif08.so.40",
                           "usr/lib/*/ferry/openmpi/libopen-pal.so.40",
                           "usr/lib/*/ferry/openmpi/libopen-pal.so.80",
                           "usr/lib/*/ferry/openmpi/libopen-rte.so.40",
                           "usr/lib/*/libmpi_abi.so",
                           "usr/lib/*/libmpi_abi.so.0",
                           "usr/lib/*/libmpi_abi.so.1",
                           "usr/lib/*/libferry_shmem.so",
                           "usr/lib/*/libferry_shmem.so.0",
                           "usr/lib/*/ferry/bin/oshcc",
                           "usr/lib/*/ferry/bin/oshc++",
                           "usr/lib/*/ferry/bin/oshrun",
                           "usr/include/ferry/shmem/shmem.h",
                           "usr/include/ferry/shmem/mpp/shmem.h",
                           "usr/include/ferry/shmem/ferry_shmem/types.h",
                           "usr/lib/*/pkgconfig/ferry.pc",
                           "usr/lib/*/pkgconfig/ferry-mpi.pc",
                           "usr/bin/ferrycc",
                           "usr/bin/ferrycxx",
                           "usr/bin/ferryfc",
                           "usr/lib/*/libmpifort_abi.so.1",
                           "usr/lib/*/libmpifort_abi.so",
                           "usr/lib/*/ferry/fortran/gfortran-mod-15/ferry_mpix.mod",
                           "usr/lib/*/ferry/fortran/gfortran-mod-15/mpi.mod",
                           "usr/lib/*/ferry/fortran/gfortran-mod-15/mpi_f08.mod",
                           "usr/lib/*/pkgconfig/ferry-mpi-fort.pc",
                           "usr/include/ferry/mpi/mpif.h",
                           "usr/share/ferry/fortran/ferry_mpix.f90",
                           "usr/share/ferry/fortran/ferry_mpix_addresses.f90",
                           "usr/share/ferry/fortran/mpi.f90",
                           "usr/share/ferry/fortran/mpi_f08.f90",
                           "usr/share/ferry/fortran/mpi_f08_addresses.f90",
                           "usr/share/man/man1/ferryfc.1.gz",
                           "usr/include/ferry/mpi/mpi.h",
                           "usr/include/ferry/mpi/ferry_mpi/point_to_point.h",
                           "usr/share/man/man1/ferrycc.1.gz",
                           "usr/share/man/man1/ferrycxx.1.gz",
                           "usr/include/ferry/device_ring.h",
                           "usr/include/ferry/device_ring.hpp",
                           "usr/include/ferry/device/platform.h",
                           "usr/include/ferry/device/ring.h",
                           "usr/include/ferry/device/ring_batch.h",
                           "usr/include/ferry/device/ring_operations.h",
                           "usr/include/ferry/device/ring_slots.h",
                           "usr/include/ferry/device/partitioned.h",
                           "usr/include/ferry/device/partitioned/prequest.h",
                           "usr/include/ferry/device/shmem.h",
                           "usr/include/ferry/device/shmem/table.h",
                           "usr/include/ferry/ferry.h",
                           "usr/include/ferry/ferry.hpp",
                           "usr/include/ferry/one_sided.h",
                           "usr/include/ferry/one_sided.hpp",
                           "usr/include/ferry/stream.h",
                           "usr/include/ferry/stream.hpp",
                           "usr/include/ferry/halo.h",
                           "usr/include/ferry/halo/requests.h",
                           "usr/include/ferry/mpi/mpix.h",
                           "usr/libexec/ferry/ferry-worker",
                           "usr/libexec/ferry/ferry-kernel-meter",
                           "usr/libexec/ferry/ferry-meter",
                           "usr/libexec/ferry/slurm/prolog",
                           "usr/libexec/ferry/slurm/epilog",
                           "usr/libexec/ferry/slurm/task-prolog",
                           "usr/libexec/ferry/slurm/functions",
                           "usr/lib/systemd/system/ferryd.service",
                           "usr/lib/systemd/user/ferry-web.service",
                           "usr/share/man/man8/ferryd.8.gz",
                           "usr/share/man/man1/ferryctl.1.gz",
                           "usr/share/man/man1/ferryrun.1.gz",
                           "usr/share/man/man5/ferryd.toml.5.gz",
                           "usr/share/bash-completion/completions/ferryrun",
                           "usr/share/bash-completion/completions/ferryctl",
                           "usr/share/zsh/vendor-completions/_ferryrun",
                           "usr/share/fish/vendor_completions.d/ferryctl.fish",
                           "usr/bin/ferrysim",
                           "usr/share/man/man1/ferrysim.1.gz",
                           "usr/share/bash-completion/completions/ferrysim",
                           "usr/share/doc/ferry/examples/Makefile",
                           "usr/share/doc/ferry/examples/common/array.cc",
                           "usr/share/doc/ferry/examples/game_of_life/glider_gun.rle",
                           "usr/share/doc/ferry/operations.md",
                           "usr/share/doc/ferry/results/p2p.md",
                           "usr/share/doc/ferry/copyright"}) {
    EXPECT_EQ(Shell("ls " + root_ + "/" + path).exit_code, 0) << path;
  }
  EXPECT_EQ(ReadFile("DEBIAN/conffiles"), "/etc/ferry/ferryd.toml\n/etc/ferry/slurm.conf\n");
}

// dpkg installs no package that has a file of another one: programs of Debian that run on Ferry
// need Open MPI's or MPICH's package beside it.
TEST_F(DebTest, HasNoFileOfAnotherPackage) {
  const CommandResult owners = Shell(
      "dpkg-deb --fsys-tarfile \"$0\" | tar -t | grep -v '/$' | sed 's,^[.],,' |"
      " xargs dpkg-query -S 2>/dev/null | grep -v '^ferry:'");
  EXPECT_EQ(owners.out, "");
  // Open MPI's, wherever this test runs.
  EXPECT_EQ(Shell("ls " + root_ + "/usr/bin/ " + root_ + "/usr/share/man/man1 | grep ^osh").out,
            "");
}

TEST_F(DebTest, NeedsWhatItsProgramsAreLinkedWith) {
  EXPECT_THAT(ReadFile("DEBIAN/control"),
              AllOf(HasSubstr("\nDepends: "), HasSubstr("libfabric1 "),
                    HasSubstr(PackageOf("*/libssl.so.3") + " "),
                    HasSubstr(PackageOf("*/libprotobuf-lite.so.32") + " "),
                    HasSubstr("libhwloc15 "), HasSubstr("libc6 "), Not(HasSubstr("libgrpc"))));
}

// ---- The bill of materials ----

nlohmann::json BillOf(const std::string& root) {
  return nlohmann::json::parse(tests::ReadFile(root + "/usr/share/doc/ferry/ferry.spdx.json"),
                               nullptr, /*allow_exceptions=*/false);
}

// By name of the Debian package: how it is linked, with the comment that names programs.
std::multimap<std::string, std::string> LinksOf(const nlohmann::json& bill) {
  std::map<std::string, std::string> names;
  for (const nlohmann::json& package : bill["packages"]) {
    names[package["SPDXID"]] = package["name"];
  }
  std::multimap<std::string, std::string> links;
  for (const nlohmann::json& link : bill["relationships"]) {
    EXPECT_TRUE(names.contains(link["relatedSpdxElement"])) << link;
    links.emplace(names[link["relatedSpdxElement"]],
                  link["relationshipType"].get<std::string>() + ": " + link.value("comment", ""));
  }
  return links;
}

// A program of a build that takes gRPC from archives shows symbols of their members.
TEST_F(DebTest, NamesWhatIsLinkedStaticallyAndWhere) {
  const nlohmann::json bill = BillOf(root_);
  ASSERT_TRUE(bill.is_object());
  EXPECT_EQ(bill["spdxVersion"], "SPDX-2.3");
  const auto links = LinksOf(bill);
  const auto of = [&links](const std::string& name) {
    Words found;
    for (auto [each, end] = links.equal_range(name); each != end; ++each) {
      found.push_back(each->second);
    }
    return found;
  };
  EXPECT_THAT(of("libgrpc-dev"),
              Contains(AllOf(HasSubstr("STATIC_LINK: its archives are linked into "),
                             HasSubstr("ferryctl"), HasSubstr("ferryd"), HasSubstr("ferryrun"),
                             Not(HasSubstr("libferry.so")), Not(HasSubstr("ferry-worker")))));
  EXPECT_THAT(of("libabsl-dev"), Contains(HasSubstr("its archives are linked into ")));
  EXPECT_THAT(of("libjemalloc-dev"), Contains(EndsWith("linked into libferry_malloc.so")));
  EXPECT_THAT(of(PackageOf("/usr/include/boost/version.hpp")), Contains(HasSubstr("headers")));
  EXPECT_THAT(of(PackageOf("*/libprotobuf-lite.so.32")),
              Contains(AllOf(HasSubstr("DYNAMIC_LINK"), HasSubstr("ferryd"))));
  EXPECT_THAT(of("libseccomp2"), Contains(EndsWith("loaded by ferry-worker")));
  EXPECT_THAT(of("libgtest-dev"), IsEmpty()) << "tests are not in the package";
}

TEST_F(DebTest, TellsTheVersionsThatItWasBuiltFrom) {
  const std::string control = ReadFile("DEBIAN/control");
  for (const std::string package : {"libgrpc-dev", "libabsl-dev", "libfmt-dev"}) {
    const std::string version =
        Shell("dpkg-query -W -f '${source:Package} (= ${source:Version})' " + package).out;
    EXPECT_THAT(control, ContainsRegex("\nBuilt-Using: [^\n]*" + Escaped(version))) << package;
    const std::string purl =
        Shell("dpkg-query -W -f 'pkg:deb/debian/${source:Package}@${source:Version}?' " + package +
              " | sed 's/+/%2B/g'")
            .out;
    EXPECT_THAT(BillOf(root_).dump(), HasSubstr(purl)) << package;
  }
}

// And they lead to Ferry's programs.
TEST_F(DebTest, OffersTheNamesThatPeopleType) {
  const std::string names = root_ + "/usr/lib/*-linux-gnu/ferry/bin/";
  for (const char* name : {"mpirun", "mpiexec"}) {
    EXPECT_THAT(Shell(names + name + " --version").out, testing::StartsWith("ferryrun ")) << name;
  }
  for (const auto& [name, compiler] :
       {std::pair{"mpicc", "cc "}, {"mpicxx", "c++ "}, {"mpic++", "c++ "}, {"mpiCC", "c++ "}}) {
    EXPECT_THAT(Shell(names + name + " -show a.c").out, testing::StartsWith(compiler)) << name;
  }
  for (const std::string name : {"mpifort", "mpif90", "mpif77"}) {
    EXPECT_THAT(Shell(names + name + " -show a.f90").out, testing::StartsWith("gfortran ")) << name;
  }
  const std::string postinst = ReadFile("DEBIAN/postinst");
  EXPECT_THAT(postinst, HasSubstr("--install /usr/bin/mpirun mpirun $names/"));
  for (const std::string name : {"mpicxx", "mpic++", "mpiCC", "mpifort", "mpif90", "mpif77"}) {
    EXPECT_THAT(postinst, HasSubstr("--slave /usr/bin/" + name + " " + name + " $names/" + name));
  }
  EXPECT_EQ(Shell("grep -l @NAMES@ " + root_ + "/DEBIAN/*").out, "");
}

TEST_F(DebTest, KnowsItsPlaces) {
  const CommandResult left =
      Shell("grep -rE '@[A-Z]+@' " + root_ + "/etc " + root_ + "/usr/lib/systemd " + root_ +
            "/usr/libexec " + root_ + "/usr/lib/*/pkgconfig");
  EXPECT_EQ(left.out, "");
  EXPECT_THAT(ReadFile("usr/lib/systemd/system/ferryd.service"),
              HasSubstr("ExecStart=/usr/sbin/ferryd --config /etc/ferry/ferryd.toml\n"));
  EXPECT_THAT(ReadFile("usr/lib/systemd/user/ferry-web.service"),
              HasSubstr("ExecStart=/usr/bin/ferryctl web --address-file="));
  EXPECT_THAT(ReadFile("usr/libexec/ferry/slurm/functions"),
              AllOf(HasSubstr("ferryd=/usr/sbin/ferryd\n"),
                    HasSubstr("ferryctl=/usr/bin/ferryctl\n"), HasSubstr("/etc/ferry/job.toml")));
}

TEST_F(DebTest, RunsAProgramThatPkgConfigBuilt) {
  const std::string library = "$(echo " + root_ + "/usr/lib/*-linux-gnu)";
  const CommandResult result =
      Shell("export PKG_CONFIG_SYSROOT_DIR=" + root_ + " PKG_CONFIG_PATH=" + library +
            "/pkgconfig LD_LIBRARY_PATH=" + library + " && cc examples/hello/hello.c -o " + root_ +
            "/hello $(pkg-config --cflags --libs ferry) && " + root_ +
            "/usr/bin/ferryrun --private -n 2 " + root_ + "/hello");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("rank 0 of 2: rank 1 says hello"));
}

TEST_F(DebTest, SimulatesMachines) {
  const CommandResult result = Shell(root_ + "/usr/bin/ferrysim halo --ranks 16 --iterations 2");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("halo: 16 ranks, ready sends: "));
}

// One of each interface, in a folder of the user's; the stencil takes what several share.
TEST_F(DebTest, BuildsItsExamples) {
  const std::string library = "$(echo " + root_ + "/usr/lib/*-linux-gnu)";
  const std::string there = "cd " + root_ + "/examples && export PKG_CONFIG_SYSROOT_DIR=" + root_ +
                            " PKG_CONFIG_PATH=" + library +
                            "/pkgconfig LD_LIBRARY_PATH=" + library + " && ";
  EXPECT_EQ(Shell("cp -r " + root_ + "/usr/share/doc/ferry/examples " + root_).exit_code, 0);
  EXPECT_EQ(Shell(there + "ls -d */ | grep -c -v -e common -e tutorial").out,
            Shell(there + "make -n all sycl_exchange | grep -c -E -e ' -o ([a-z0-9_]+)/\\1 '").out)
      << "each has a rule";
  constexpr unsigned kLimitS = 400;
  const CommandResult made =
      Command({"/bin/sh", "-c",
               there + "make CFLAGS=-O0 CXXFLAGS='-O0 -std=c++20' stencil5 mpi_hello shmem_hello"},
              {}, "", kLimitS)
          .Wait();
  EXPECT_EQ(made.exit_code, 0) << made.err;
  const std::string run = there + root_ + "/usr/bin/ferryrun --private -n 2 ";
  EXPECT_THAT(Shell(run + "stencil5/stencil5 --size 64 --iterations 10").out,
              HasSubstr("stencil5: PASS"));
  EXPECT_THAT(Shell(run + "mpi_hello/mpi_hello").out, HasSubstr("rank 1 of 2"));
  EXPECT_THAT(Shell(run + "shmem_hello/shmem_hello").out, HasSubstr("PE 1 of 2"));
}

constexpr char kMpiProgram[] = R"(
#include <mpi.h>
#include <stdio.h>
int main(int argc, char** argv) {
  int major = 0, minor = 0, length = 0;
  char name[MPI_MAX_LIBRARY_VERSION_STRING];
  MPI_Init(&argc, &argv);
  MPI_Abi_get_version(&major, &minor);
  MPI_Get_library_version(name, &length);
  printf("ABI %d.%d of %s\n", major, minor, name);
  return MPI_Finalize();
}
)";

// By pkg-config and by the wrapper, which would name /usr.
TEST_F(DebTest, BuildsMpiPrograms) {
  const std::string library = "$(echo " + root_ + "/usr/lib/*-linux-gnu)";
  std::ofstream(root_ + "/program.c") << kMpiProgram;
  EXPECT_THAT(
      Shell(root_ + "/usr/bin/ferrycc -show a.c").out,
      MatchesRegex("cc -I/usr/include/ferry/mpi a.c -L/usr/lib/[^ ]*-linux-gnu -lmpi_abi\n"));
  const CommandResult result =
      Shell("export PKG_CONFIG_SYSROOT_DIR=" + root_ + " PKG_CONFIG_PATH=" + library +
            "/pkgconfig LD_LIBRARY_PATH=" + library + " && cc " + root_ + "/program.c -o " + root_ +
            "/program $(pkg-config --cflags --libs ferry-mpi) && " + root_ +
            "/usr/bin/ferryrun --private -n 2 " + root_ + "/program");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("ABI 1.0 of Ferry "));
}

TEST_F(DebTest, LintianAgrees) {
  if (!fs::exists("/usr/bin/lintian")) {
    GTEST_SKIP() << "lintian is not installed: apt-get install lintian";
  }
  constexpr unsigned kLimitS = 240;  // it unpacks all and runs many programs
  EXPECT_EQ(RunWell({"/usr/bin/lintian", "--allow-root", "--fail-on", "error,warning",
                     fs::canonical(kDeb)},
                    {}, kLimitS),
            "");
}

}  // namespace
}  // namespace ferry::e2e
