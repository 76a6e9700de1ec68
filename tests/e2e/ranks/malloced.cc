// Rank 0 sends blocks of malloc to rank 1, which dies if it copies anything of another process
// through the kernel. Then both say by which ways the messages went. "apart": the ranks are on two
// nodes, or malloc's memory is private, so nothing is said of ways; "with_the_kernel" after it:
// both may do what they like.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "ferry/ferry.h"
#include "tests/e2e/ranks/check.h"

namespace {

constexpr int kRounds = 20;
constexpr size_t kMebi = size_t{1} << 20;

struct Freed {
  void operator()(void* block) const { std::free(block); }
};
using Block = std::unique_ptr<uint8_t, Freed>;

Block Allocate(size_t size) { return Block(static_cast<uint8_t*>(std::malloc(size))); }

// A system call by which processes copy each other's memory ends this one.
void ForbidProcessVm() {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  };
  const sock_fprog program{std::size(rules), rules};
  CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

// Returns true if this process has memory of that name mapped.
bool Maps(const std::string& name) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(name) != line.npos) {
      return true;
    }
  }
  return false;
}

void Exchange(size_t size) {
  const auto message = static_cast<uint64_t>(size);
  for (int round = 0; round < kRounds; ++round) {
    const Block block = Allocate(size);
    if (ferry_rank() == 0) {
      ferry::ranks::Fill(block.get(), size, message + static_cast<uint64_t>(round));
      CHECK_OK(ferry_send(block.get(), size, 1, round));
    } else {
      ferry_status status{};
      CHECK_OK(ferry_recv(block.get(), size, 0, round, &status));
      CHECK_EQ(status.size_bytes, size);
      CHECK_BYTES(block.get(), size, message + static_cast<uint64_t>(round));
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bool apart = argc > 1 && std::strcmp(argv[1], "apart") == 0;
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  if (ferry_rank() == 1 && argc < 3) {
    ForbidProcessVm();
  }
  // The last two are too long for a bounce buffer, however late the receiver comes.
  const size_t sizes[] = {20000, 100000, 400000, kMebi, 5 * kMebi};
  for (const size_t size : sizes) {
    Exchange(size);
  }
  // The heap's file grows by this: peers have to map it anew.
  const Block large = Allocate(700 * kMebi);
  CHECK_EQ(large == nullptr, false);
  Exchange(3 * kMebi);
  uint8_t* const end = large.get() + 699 * kMebi;
  if (ferry_rank() == 0) {
    ferry::ranks::Fill(end, kMebi, 1);
    CHECK_OK(ferry_send(end, kMebi, 1, 0));
  } else {
    CHECK_OK(ferry_recv(end, kMebi, 0, 0, nullptr));
    CHECK_BYTES(end, kMebi, 1);
  }
  if (!apart && ferry_rank() == 1) {
    const uint64_t messages = (std::size(sizes) + 1) * kRounds + 1;
    CHECK_EQ(ferry::ranks::CounterNamed("path_heap_copy_messages"), messages);
    CHECK_EQ(ferry::ranks::CounterNamed("path_process_vm_messages"), 0);
    CHECK_EQ(Maps("ferry-malloc"), true);
    std::printf("all were copied once\n");
  }
  CHECK_OK(ferry_finalize());
  return 0;
}
