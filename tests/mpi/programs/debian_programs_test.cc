// Programs of Debian's packages, unchanged: linked with Open MPI or MPICH, and run on Ferry's
// libraries of these names, on one node and on two. Their results are compared with what is known
// of the problem, and with those under the library that they were built for, where its launcher is
// installed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "tests/e2e/command.h"

namespace ferry::mpi {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr unsigned kFetchLimitS = 900;
constexpr unsigned kRunLimitS = 900;

// A program, and what shows that it has computed right. All but the first are pieces of bash: $root
// is the folder of unpacked packages, $libraries those of its libraries. The working directory of
// `prepare` is empty; each run has a copy of what it leaves.
struct Row {
  const char* name;
  const char* packages;
  const char* family;  // openmpi or mpich: the library that it is linked with
  int ranks;
  const char* prepare;
  const char* program;
  // Picks the results out of the file `output`, and others that the program has written.
  const char* results;
  // Lines, of which each is a piece of the results.
  const char* known;
  // Why results are not compared with the other library's; null: they are.
  const char* not_compared = nullptr;
};

constexpr char kNothing[] = ":";

// Lennard-Jones atoms on a lattice, of which the first energy is known.
constexpr char kLammpsInput[] = R"sh(
cat >in.lj <<'END'
units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 6 0 6 0 6
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 1.44 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify delay 0 every 20 check no
fix 1 all nve
thermo 50
run 100
END
)sh";

// A program of the package makes the pseudopotential: no other package is needed.
constexpr char kSiliconInput[] = R"sh(
cat >atom.in <<'END'
&input
 title='Si', zed=14.0, rel=1, config='[Ne] 3s2 3p2', iswitch=3, dft='PZ'
/
&inputp
 lloc=1, pseudotype=1, tm=.true., file_pseudopw='Si.UPF'
/
2
3S 1 0 2.00 0.00 2.20 2.20
3P 2 1 2.00 0.00 2.20 2.20
END
cat >si.in <<'END'
&control
 calculation='scf', pseudo_dir='.', outdir='.', prefix='si'
/
&system
 ibrav=2, celldm(1)=10.2, nat=2, ntyp=1, ecutwfc=14.0
/
&electrons
 conv_thr=1.0d-8
/
ATOMIC_SPECIES
 Si 28.086 Si.UPF
ATOMIC_POSITIONS alat
 Si 0.00 0.00 0.00
 Si 0.25 0.25 0.25
K_POINTS automatic
 2 2 2 1 1 1
END
"$FERRYRUN" --private --no-label -n 1 "$root/usr/bin/ld1.x" -in atom.in >atom.out
test -s Si.UPF
)sh";

constexpr char kWaterInput[] = R"sh(
cat >h2o.nw <<'END'
start h2o
geometry units au
 O 0.0 0.0 0.0
 H 0.0 1.43042809 -1.10715266
 H 0.0 -1.43042809 -1.10715266
end
basis
 * library 6-31g
end
task scf energy
END
)sh";

// The lid of a square cavity moves: one region for each rank.
constexpr char kCavityInput[] = R"sh(
case=$(find "$root" -type d -path '*/incompressible/icoFoam/cavity/cavity')
cp -r "$case/." .
find . -name '*.gz' -exec gunzip {} +
mkdir -p "$HOME/.OpenFOAM"
cat >system/decomposeParDict <<'END'
FoamFile { version 2.0; format ascii; class dictionary; object decomposeParDict; }
numberOfSubdomains 4;
method simple;
coeffs { n (2 2 1); }
END
export WM_PROJECT_DIR=$root/usr/share/openfoam
"$root/usr/bin/blockMesh" >mesh.out
"$root/usr/bin/decomposePar" >parts.out
)sh";

// The ground state of the package's example, with fewer points and the species in this folder.
constexpr char kAluminiumInput[] = R"sh(
cp "$root/usr/share/elk-lapw/species/Al.in" .
sed -e "s,^ *['\"].*/species/['\"],  './'," -e 's/^  4  4  4$/  2  2  2/' \
  "$root/usr/share/doc/elk-lapw/examples/basic/Al/elk.in" >elk.in
grep -q "^  './'" elk.in
)sh";

// Words on the tests, and how many: each problem of the input, solved and checked.
constexpr char kScalapackResults[] = "grep -E 'tests completed and' output | sed 's/^ *//'";
constexpr char kNetpipeResults[] = R"sh(
cat output errors | grep -c 'Integrity check passed'
! grep -i fail output errors
)sh";
constexpr char kWaterResults[] = R"sh(
grep -E 'Total SCF energy|Nuclear repulsion energy|One-electron energy' output |
  sed -E 's/ +/ /g; s/([0-9]\.[0-9]{7})[0-9]*/\1/'
)sh";

// ScaLAPACK's test programs have their problems in files of the working directory.
constexpr char kScalapackInput[] = "cp $root/usr/share/scalapack/*.dat .";
constexpr char kSlow[] = "its ranks poll: minutes on cores that others use, too";

const Row kRows[] = {
    {.name = "Netpipe",
     .packages = "netpipe-openmpi",
     .family = "openmpi",
     .ranks = 2,
     .prepare = kNothing,
     .program = "$root/usr/bin/NPopenmpi -i -n 20 -u 4096",
     .results = kNetpipeResults,
     .known = "20"},
    {.name = "NetpipeOfMpich",
     .packages = "netpipe-mpich2",
     .family = "mpich",
     .ranks = 2,
     .prepare = kNothing,
     .program = "$root/usr/bin/NPmpich2 -i -n 20 -u 4096",
     .results = kNetpipeResults,
     .known = "20"},
    {.name = "HpcChallenge",
     .packages = "hpcc",
     .family = "openmpi",
     .ranks = 4,
     .prepare = "sed -e 's/^[0-9]* *Ns$/400 Ns/' "
                "$root/usr/share/doc/hpcc/examples/_hpccinf.txt >hpccinf.txt",
     .program = "$root/usr/bin/hpcc",
     .results = R"sh(
grep -E '^(Success|HPL_N|PTRANS_residual|MPIRandomAccess(_LCG)?_Errors|CommWorldProcs)=' hpccoutf.txt
echo "$(grep -c PASSED hpccoutf.txt) passed, $(grep -c FAILED hpccoutf.txt) failed"
)sh",
     .known = "Success=1\nHPL_N=400\nPTRANS_residual=0\nMPIRandomAccess_Errors=0\n"
              "MPIRandomAccess_LCG_Errors=0\nCommWorldProcs=4\n11 passed, 0 failed"},
    {.name = "Lammps",
     .packages = "lammps",
     .family = "openmpi",
     .ranks = 2,
     .prepare = kLammpsInput,
     .program = "$root/usr/bin/lmp -in in.lj",
     .results = "grep -A 3 '^ *Step' output",
     .known = "-6.7733681\n-4.6158681"},
    {.name = "QuantumEspresso",
     .packages = "quantum-espresso",
     .family = "openmpi",
     .ranks = 2,
     .prepare = kSiliconInput,
     .program = "$root/usr/bin/pw.x -in si.in",
     .results = "grep -E '^!|convergence has been' output",
     .known = "total energy              =     -15.8316\nconvergence has been achieved"},
    {.name = "Nwchem",
     .packages = "nwchem-openmpi",
     .family = "openmpi",
     .ranks = 3,
     .prepare = kWaterInput,
     .program = "$root/usr/bin/nwchem.openmpi h2o.nw",
     .results = kWaterResults,
     .known = "Total SCF energy = -75.983997"},
    {.name = "NwchemOfMpich",
     .packages = "nwchem-mpich",
     .family = "mpich",
     .ranks = 3,
     .prepare = kWaterInput,
     .program = "$root/usr/bin/nwchem.mpich h2o.nw",
     .results = kWaterResults,
     .known = "Total SCF energy = -75.983997",
     .not_compared = "with MPICH, Debian's own stops with negative proj"},
    {.name = "ScalapackLu",
     .packages = "scalapack-mpi-test",
     .family = "openmpi",
     .ranks = 4,
     .prepare = kScalapackInput,
     .program = "$libraries/scalapack/openmpi-tests/xslu",
     .results = kScalapackResults,
     .known = "240 tests completed and passed\n0 tests completed and failed",
     .not_compared = kSlow},
    {.name = "ScalapackQr",
     .packages = "scalapack-mpi-test",
     .family = "openmpi",
     .ranks = 4,
     .prepare = kScalapackInput,
     .program = "$libraries/scalapack/openmpi-tests/xzqr",
     .results = kScalapackResults,
     .known = "352 tests completed and passed\n0 tests completed and failed",
     .not_compared = kSlow},
    {.name = "ScalapackQrOfMpich",
     .packages = "scalapack-mpi-test",
     .family = "mpich",
     .ranks = 4,
     .prepare = kScalapackInput,
     .program = "$libraries/scalapack/mpich-tests/xzqr",
     .results = kScalapackResults,
     .known = "352 tests completed and passed\n0 tests completed and failed",
     .not_compared = kSlow},
    {.name = "Mumps",
     .packages = "mumps-test",
     .family = "openmpi",
     .ranks = 3,
     .prepare = "cp $root/usr/lib/mumps/input_simpletest_real .",
     .program = "$root/usr/lib/mumps/dsimpletest <input_simpletest_real",
     // Five numbers: rounded, since the last digits depend on the order of sums.
     .results = R"sh(
sed -n 's/^ *Solution is//p' output | awk '{ for (i = 1; i <= NF; ++i) printf "%.9f\n", $i }'
)sh",
     .known = "1.000000000\n2.000000000\n3.000000000\n4.000000000\n5.000000000"},
    {.name = "Elk",
     .packages = "elk-lapw",
     .family = "openmpi",
     .ranks = 2,
     .prepare = kAluminiumInput,
     .program = "$root/usr/bin/elk-lapw",
     .results = "sed -E 's/([0-9]\\.[0-9]{7})[0-9]*/\\1/' TOTENERGY.OUT",
     .known = "-241.9"},
    {.name = "OpenFoam",
     .packages = "openfoam openfoam-examples",
     .family = "openmpi",
     .ranks = 4,
     .prepare = kCavityInput,
     .program = "env WM_PROJECT_DIR=$root/usr/share/openfoam $root/usr/bin/icoFoam -parallel",
     // Sums are added in another order on another number of nodes, which the last digits show.
     .results = R"sh(
grep -E '^Time = |Solving for' output | sed -E 's/([0-9]\.[0-9]{4})[0-9]*/\1/g'
grep -c 'Solving for' output
)sh",
     .known = "Time = 0.5\n400"},
};

// For GoogleTest's messages.
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

std::string NameOf(const testing::TestParamInfo<Row>& info) { return info.param.name; }

// Leaves nothing outside its working directory: the machine's apt stays as it is. Takes what the
// machine lacks of the packages, $packages, and of those that they need.
constexpr char kFetch[] = R"sh(
source /etc/os-release
mkdir -p apt/state/lists/partial apt/archives/partial root
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
  "http://deb.debian.org/debian ${VERSION_CODENAME:-stable} main" >apt/sources.list
options=(-qq -o "Dir::Etc::sourcelist=$PWD/apt/sources.list" -o Dir::Etc::sourceparts=-
  -o "Dir::State=$PWD/apt/state" -o Dir::State::status=/var/lib/dpkg/status
  -o "Dir::Cache=$PWD/apt" -o "APT::Sandbox::User=$(id -un)" -o Debug::NoLocking=1
  -o Acquire::http::Timeout=15 -o Acquire::Retries=1)
if [[ ! -e apt/updated ]]; then
  apt-get "${options[@]}" update
  touch apt/updated
fi
apt-get "${options[@]}" -y --no-install-recommends --download-only install $packages
for file in apt/archives/*.deb; do
  [[ -e $file.unpacked ]] && continue
  dpkg-deb -x "$file" root
  touch "$file.unpacked"
done
)sh";

// Other launchers want to be told that root may start ranks, and that these may share cores.
constexpr char kEnvironment[] = R"sh(
set -euo pipefail
libraries=$root/usr/lib/$(gcc -print-multiarch 2>/dev/null || echo x86_64-linux-gnu)
export LD_LIBRARY_PATH=$libraries:$libraries/blas:$libraries/lapack:$root/usr/lib
export OMP_NUM_THREADS=1 HOME=$PWD NWCHEM_BASIS_LIBRARY=$root/usr/share/nwchem/libraries/
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1
)sh";

class DebianProgramsTest : public testing::TestWithParam<Row> {
 protected:
  static void SetUpTestSuite() { folder_ = std::make_unique<e2e::TempDirectory>(); }
  static void TearDownTestSuite() { folder_.reset(); }

  static e2e::CommandResult Bash(const std::string& script, unsigned limit_s) {
    const std::string launcher = std::filesystem::absolute("tools/ferryrun/ferryrun");
    const std::string packages = std::string("packages=") + GetParam().packages;
    e2e::Command command({"/bin/bash", "-c", "cd '" + folder_->path() + "'\n" + script},
                         {"FERRYRUN=" + launcher, "root=" + *folder_ / "root", packages}, "",
                         limit_s);
    return command.Wait();
  }

  // The script that goes to the row's folder.
  static std::string Here() {
    const std::string name = GetParam().name;
    return "mkdir -p " + name + "\ncd " + name + "\n" + kEnvironment;
  }

  // The results of a run in a fresh copy of the prepared folder.
  static std::string ResultsUnder(const std::string& launcher) {
    SCOPED_TRACE(launcher);
    const Row& row = GetParam();
    const std::string run = Here() + "rm -rf run\ncp -r input run\ncd run\n" + launcher + " " +
                            row.program + " >output 2>errors";
    const std::string folder = *folder_ / row.name + "/run";
    const e2e::CommandResult ran = Bash(run, kRunLimitS);
    const std::string said = Bash("tail -n 40 '" + folder + "'/{output,errors}", kRunLimitS).out;
    EXPECT_EQ(ran.exit_code, 0) << said;
    EXPECT_THAT(said, Not(HasSubstr("do not use Ferry")));
    const e2e::CommandResult picked = Bash(Here() + "cd run\n" + row.results, kRunLimitS);
    EXPECT_EQ(picked.exit_code, 0) << said;
    return picked.out;
  }

  static std::unique_ptr<e2e::TempDirectory> folder_;
};

std::unique_ptr<e2e::TempDirectory> DebianProgramsTest::folder_;

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  size_t begin = 0;
  for (size_t end = 0; end != text.npos; begin = end + 1) {
    end = text.find('\n', begin);
    lines.push_back(text.substr(begin, end - begin));
  }
  return lines;
}

TEST_P(DebianProgramsTest, ComputesOnFerryWhatItShould) {
  const Row& row = GetParam();
  const e2e::CommandResult fetched = Bash(std::string("set -euo pipefail") + kFetch, kFetchLimitS);
  if (fetched.exit_code != 0) {
    GTEST_SKIP() << row.packages << " cannot be had from Debian:\n" << fetched.err;
  }
  const e2e::CommandResult prepared =
      Bash(Here() + "mkdir input\ncd input\n" + row.prepare, kRunLimitS);
  ASSERT_EQ(prepared.exit_code, 0) << prepared.out << prepared.err;

  const std::string ranks = " -n " + std::to_string(row.ranks);
  std::string expected;
  const std::string peer = std::string("/usr/bin/mpirun.") + row.family;
  if (row.not_compared == nullptr && std::filesystem::exists(peer)) {
    expected = ResultsUnder(peer + ranks);
    ASSERT_FALSE(expected.empty());
  }
  for (const char* nodes : {" --nodes 1 ", " --nodes 2 "}) {
    const std::string results = ResultsUnder("$FERRYRUN --private --no-label" + ranks + nodes);
    for (const std::string& line : Lines(row.known)) {
      EXPECT_THAT(results, HasSubstr(line)) << nodes;
    }
    if (!expected.empty()) {
      EXPECT_EQ(results, expected) << nodes;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, DebianProgramsTest, testing::ValuesIn(kRows), NameOf);

}  // namespace
}  // namespace ferry::mpi
