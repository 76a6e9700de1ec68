// libferry_malloc.so in programs that know nothing of it, and under limits that leave it no room.
#include <gmock/gmock.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/e2e/command.h"

namespace ferry::malloc_heap {
namespace {

// Runs a program with the library, under a limit that a shell sets.
e2e::CommandResult RunPreloaded(const std::vector<std::string>& program,
                                const std::string& limit = "true") {
  const std::string library = std::filesystem::absolute("client/malloc/libferry_malloc.so");
  std::vector<std::string> command = {
      "/bin/bash", "-c", limit + " && exec env LD_PRELOAD=" + library + " \"$@\"", "bash"};
  command.insert(command.end(), program.begin(), program.end());
  return e2e::RunCommand(command);
}

// Expects the program to end well, and to say this and nothing else.
void ExpectSaid(const std::string& says, const std::vector<std::string>& program,
                const std::string& limit = "true") {
  const e2e::CommandResult result = RunPreloaded(program, limit);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, says);
  EXPECT_EQ(result.err, "");
}

// Prints where its memory is, and works with 40 MiB of it.
const std::vector<std::string> kWorker = {"tests/client/malloc/heap_worker"};

TEST(PreloadTest, ProgramUsesTheFile) { ExpectSaid("refusal 0, shared, in the file\n", kWorker); }

TEST(PreloadTest, FileSizeLimitLeavesPrivateMemory) {
  ExpectSaid("refusal 3, private, elsewhere\n", kWorker, "ulimit -f 1024");
}

TEST(PreloadTest, BeyondTheFileSizeLimitMemoryIsPrivate) {
  ExpectSaid("refusal 3, shared, elsewhere\n", kWorker, "ulimit -f 20480");
}

TEST(PreloadTest, LittleAddressSpace) {
  ExpectSaid("refusal 0, shared, in the file\n", kWorker, "ulimit -v 409600");
}

// The heap has half of it, in which not everything fits that the allocator would like to have.
TEST(PreloadTest, VeryLittleAddressSpace) {
  ExpectSaid("refusal 1, shared, in the file\n", kWorker, "ulimit -v 112640");
}

// The dynamic linker needs three descriptors at most, and has closed them when malloc comes.
TEST(PreloadTest, NoDescriptorForTheFile) {
  const e2e::CommandResult result =
      RunPreloaded({"bash", "-c", "ulimit -n 3; echo still $((6 * 7))"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out + result.err, testing::HasSubstr("still 42"));
}

TEST(PreloadTest, BashForksAndPipes) {
  ExpectSaid("465\n", {"bash", "-c",
                       "sum=0; for i in $(seq 30); do x=$(echo $i | sort | tr -d a); "
                       "sum=$((sum + x)); done; (exit 3) || echo $sum"});
}

TEST(PreloadTest, PerlForks) {
  ExpectSaid(
      "2000210\n",

      {"perl", "-e",
       "my @a = (1..100000); my $n = 0; for my $i (1..20) { my $p = open(my $f, '-|') // die; "
       "if (!$p) { print scalar(@a) + $i; exit 0 } $n += <$f>; close $f; } print \"$n\\n\";"});
}

TEST(PreloadTest, PythonThreadsAndProcesses) {
  ExpectSaid(
      "500500\nspawned\n",

      {"python3", "-c",
       "import multiprocessing as m, threading as t, subprocess as s\n"
       "c = m.get_context('fork')\n"
       "stop = t.Event()\n"
       "def churn():\n"
       "  while not stop.is_set(): [bytearray(n) for n in range(0, 90000, 1000)]\n"
       "threads = [t.Thread(target=churn) for _ in range(2)]\n"
       "[x.start() for x in threads]\n"
       "with c.Pool(4) as p: print(sum(p.map(abs, range(-1000, 0))))\n"
       "stop.set()\n"
       "print(s.run(['echo', 'spawned'], capture_output=True, text=True).stdout.strip())\n"});
}

TEST(PreloadTest, Numpy) {
  if (RunPreloaded({"python3", "-c", "import numpy"}).exit_code != 0) {
    GTEST_SKIP() << "python3 has no numpy (apt-get install python3-numpy)";
  }
  ExpectSaid("7999998000000 32000000000\n",

             {"python3", "-c",
              "import numpy as n; a = n.arange(4000000.0); b = n.zeros((2000, 2000)); b[:] = 2\n"
              "print(int(a.sum()), int((b @ b).sum()))"});
}

}  // namespace
}  // namespace ferry::malloc_heap
