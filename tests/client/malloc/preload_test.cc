// libferry_malloc.so in programs that know nothing of it, and under limits that leave it no room.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace ferry::malloc_heap {
namespace {

const std::string& Library() {
  static const std::string path =
      std::filesystem::absolute("client/malloc/libferry_malloc.so").string();
  return path;
}

struct Outcome {
  int status = -1;
  std::string output;  // of both streams
};

// Runs a program with the library; `limit` sets limits in it.
Outcome RunPreloaded(
    const std::vector<std::string>& command, const std::function<void()>& limit = [] {}) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], 1);
    dup2(ends[1], 2);
    close(ends[0]);
    close(ends[1]);
    setenv("LD_PRELOAD", Library().c_str(), 1);
    std::vector<char*> arguments;
    for (const std::string& argument : command) {
      arguments.push_back(const_cast<char*>(argument.c_str()));
    }
    arguments.push_back(nullptr);
    limit();
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  close(ends[1]);
  Outcome outcome;
  char buffer[4096];
  for (ssize_t got = 0; (got = read(ends[0], buffer, sizeof(buffer))) > 0;) {
    outcome.output.append(buffer, static_cast<size_t>(got));
  }
  close(ends[0]);
  waitpid(child, &outcome.status, 0);
  return outcome;
}

void Limit(__rlimit_resource resource, rlim_t value) {
  const rlimit limit{value, value};
  setrlimit(resource, &limit);
}

// Prints where its memory is, and works with 40 MiB of it.
const std::vector<std::string> kWorker = {"tests/client/malloc/heap_worker"};

// What that program says if it starts with this limit.
void ExpectUnder(__rlimit_resource resource, rlim_t value, const std::string& says) {
  const Outcome outcome = RunPreloaded(kWorker, [=] { Limit(resource, value); });
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_EQ(outcome.output, says);
}

TEST(PreloadTest, ProgramUsesTheFile) {
  const Outcome outcome = RunPreloaded(kWorker);
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_EQ(outcome.output, "refusal 0, shared, in the file\n");
}

TEST(PreloadTest, FileSizeLimitLeavesPrivateMemory) {
  ExpectUnder(RLIMIT_FSIZE, 1 << 20, "refusal 3, private, elsewhere\n");
}

TEST(PreloadTest, BeyondTheFileSizeLimitMemoryIsPrivate) {
  ExpectUnder(RLIMIT_FSIZE, 20 << 20, "refusal 3, shared, elsewhere\n");
}

TEST(PreloadTest, LittleAddressSpace) {
  ExpectUnder(RLIMIT_AS, 400 << 20, "refusal 0, shared, in the file\n");
}

// The heap has half of it, in which not everything fits that the allocator would like to have.
TEST(PreloadTest, VeryLittleAddressSpace) {
  ExpectUnder(RLIMIT_AS, 110 << 20, "refusal 1, shared, in the file\n");
}

// The dynamic linker needs three descriptors at most, and has closed them when malloc comes.
TEST(PreloadTest, NoDescriptorForTheFile) {
  const Outcome outcome = RunPreloaded({"bash", "-c", "ulimit -n 3; echo still $((6 * 7))"});
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("still 42"), std::string::npos) << outcome.output;
}

TEST(PreloadTest, BashForksAndPipes) {
  const Outcome outcome =
      RunPreloaded({"bash", "-c",
                    "sum=0; for i in $(seq 30); do x=$(echo $i | sort | tr -d a); "
                    "sum=$((sum + x)); done; (exit 3) || echo $sum"});
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_EQ(outcome.output, "465\n");
}

TEST(PreloadTest, PerlForks) {
  const Outcome outcome = RunPreloaded(
      {"perl", "-e",
       "my @a = (1..100000); my $n = 0; for my $i (1..20) { my $p = open(my $f, '-|') // die; "
       "if (!$p) { print scalar(@a) + $i; exit 0 } $n += <$f>; close $f; } print \"$n\\n\";"});
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_EQ(outcome.output, "2000210\n");
}

TEST(PreloadTest, PythonThreadsAndProcesses) {
  const Outcome outcome = RunPreloaded(
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
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_EQ(outcome.output, "500500\nspawned\n");
}

TEST(PreloadTest, Numpy) {
  if (RunPreloaded({"python3", "-c", "import numpy"}).status != 0) {
    GTEST_SKIP() << "python3 has no numpy (apt-get install python3-numpy)";
  }
  const Outcome outcome = RunPreloaded(
      {"python3", "-c",
       "import numpy as n; a = n.arange(4000000.0); b = n.zeros((2000, 2000)); b[:] = 2\n"
       "print(int(a.sum()), int((b @ b).sum()))"});
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_EQ(outcome.output, "7999998000000 32000000000\n");
}

}  // namespace
}  // namespace ferry::malloc_heap
