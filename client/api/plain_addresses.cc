#include "client/api/plain_addresses.h"

#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>

#include "common/process_stat.h"

namespace ferry::client {
namespace {

struct Stack {
  uintptr_t begin = 0;
  uintptr_t end = 0;  // 0: not looked up yet; begin == end: unknown
};

// This thread_local has the default model: with initial-exec, gold gives the relocation of a
// variable that only this file sees the wrong symbol, and the variable the place of another one.
constinit thread_local Stack stack;

[[gnu::noinline]] void FindStack() {
  pthread_attr_t attributes;
  void* begin = nullptr;
  size_t size_bytes = 0;
  stack = {UINTPTR_MAX, UINTPTR_MAX};
  if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
    if (pthread_attr_getstack(&attributes, &begin, &size_bytes) == 0) {
      stack.begin = reinterpret_cast<uintptr_t>(begin);
      stack.end = stack.begin + size_bytes;
    }
    (void)pthread_attr_destroy(&attributes);
  }
}

// The heap's first address; UINTPTR_MAX if /proc does not tell it.
uintptr_t FindHeap() {
  const uint64_t begin = ReadProcessStat("/proc/self").heap_begin;
  return begin != 0 ? begin : UINTPTR_MAX;
}

}  // namespace

// Notes the segments of the program itself, which are never unloaded.
ProgramAddresses::ProgramAddresses() : heap_begin_(FindHeap()) {
  const auto* const headers = reinterpret_cast<const ElfW(Phdr)*>(getauxval(AT_PHDR));
  const size_t count = headers == nullptr ? 0 : getauxval(AT_PHNUM);
  uintptr_t base = 0;
  for (size_t i = 0; i < count; ++i) {
    if (headers[i].p_type == PT_PHDR) {
      base = reinterpret_cast<uintptr_t>(headers) - headers[i].p_vaddr;
    }
  }
  // Between two segments others might be mapped: those that can be written to are together.
  uintptr_t begin = UINTPTR_MAX;
  uintptr_t end = 0;
  for (size_t i = 0; i < count; ++i) {
    if (headers[i].p_type == PT_LOAD && (headers[i].p_flags & PF_W) != 0) {
      begin = std::min<uintptr_t>(begin, base + headers[i].p_vaddr);
      end = std::max<uintptr_t>(end, base + headers[i].p_vaddr + headers[i].p_memsz);
    }
  }
  if (begin < end) {
    image_begin_ = begin;
    image_end_ = end;
  }
}

bool ProgramAddresses::Contains(const void* pointer) const {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  return address - image_begin_ < image_end_ - image_begin_ || IsOnStack(address) ||
         (address >= heap_begin_ && address < reinterpret_cast<uintptr_t>(sbrk(0)));
}

// Looks only at the used part of the stack: below it, the main thread's is not mapped. A program
// that switches stacks itself (makecontext) may call on a stack that belongs to no thread.
bool ProgramAddresses::IsOnStack(uintptr_t address) const {
  if (stack.end == 0) [[unlikely]] {
    FindStack();
  }
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  return here - stack.begin < stack.end - stack.begin && address - here < stack.end - here;
}

}  // namespace ferry::client
