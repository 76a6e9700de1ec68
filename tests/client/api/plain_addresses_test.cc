#include "client/api/plain_addresses.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <thread>
#include <vector>

#include "client/memory/last_library.h"

namespace ferry::client {
namespace {

constexpr size_t kMapped = 1 << 20;

class Mapped {
 public:
  Mapped()
      : base_(mmap(nullptr, kMapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  ~Mapped() { munmap(base_, kMapped); }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  char* at(size_t offset) const { return static_cast<char*>(base_) + offset; }

 private:
  void* base_;
};

int in_image = 1;
int in_bss[1000];
const int constant = 2;

TEST(PlainAddressesTest, AllArePlainWithoutDevices) {
  const PlainAddresses addresses;
  const Mapped mapped;
  EXPECT_FALSE(addresses.MayHaveVendor());
  EXPECT_TRUE(addresses.IsPlain(mapped.at(0)));
  EXPECT_TRUE(addresses.IsPlain(nullptr));
}

TEST(PlainAddressesTest, DevicesMemoryIsNot) {
  PlainAddresses addresses;
  const Mapped mapped;
  addresses.AddByStream(mapped.at(4096), 4096);
  EXPECT_TRUE(addresses.IsPlain(mapped.at(4095)));
  EXPECT_FALSE(addresses.IsPlain(mapped.at(4096)));
  EXPECT_FALSE(addresses.IsPlain(mapped.at(8191)));
  EXPECT_TRUE(addresses.IsPlain(mapped.at(8192)));
}

TEST(PlainAddressesTest, WithAVendorOnlyTheProgramsOwnAreSurelyPlain) {
  PlainAddresses addresses;
  addresses.Watch(nullptr);
  int on_stack = 0;
  EXPECT_TRUE(addresses.MayHaveVendor());
  EXPECT_TRUE(addresses.IsPlain(&on_stack));
  EXPECT_TRUE(addresses.IsPlain(&in_image));
  EXPECT_TRUE(addresses.IsPlain(&in_bss[999]));
  auto* const end = static_cast<char*>(sbrk(4096));
  ASSERT_NE(end, reinterpret_cast<char*>(-1));
  EXPECT_TRUE(addresses.IsPlain(end));
  EXPECT_TRUE(addresses.IsPlain(end + 4095));
  EXPECT_FALSE(addresses.IsPlain(static_cast<char*>(sbrk(0))));
  const Mapped mapped;
  EXPECT_FALSE(addresses.IsPlain(mapped.at(0)));
  EXPECT_FALSE(addresses.IsPlain(nullptr));
  EXPECT_FALSE(addresses.IsPlain(reinterpret_cast<const void*>(UINTPTR_MAX)));
  EXPECT_FALSE(addresses.IsPlain(reinterpret_cast<const void*>(uintptr_t{1} << 46)));
  // The heap has ended before it.
  ASSERT_EQ(brk(end), 0);
  EXPECT_FALSE(addresses.IsPlain(end));
}

TEST(PlainAddressesTest, EachThreadKnowsItsOwnStack) {
  PlainAddresses addresses;
  addresses.Watch(nullptr);
  const int* of_other = nullptr;
  std::thread([&] {
    int on_stack = 0;
    EXPECT_TRUE(addresses.IsPlain(&on_stack));
    of_other = &on_stack;
    std::thread([&] { EXPECT_FALSE(addresses.IsPlain(of_other)); }).join();
  }).join();
  EXPECT_FALSE(addresses.IsPlain(of_other));  // it may be unmapped
}

// A stack of the program's own (makecontext): between it and the thread's, anything may be mapped.
class OnOwnStack {
 public:
  static void Run(std::function<void()> function) {
    function_ = std::move(function);
    const Mapped stack;
    ucontext_t there{};
    ASSERT_EQ(getcontext(&there), 0);
    there.uc_stack.ss_sp = stack.at(0);
    there.uc_stack.ss_size = kMapped;
    there.uc_link = &back_;
    makecontext(
        &there, [] { function_(); }, 0);
    ASSERT_EQ(swapcontext(&back_, &there), 0);
  }

 private:
  static inline std::function<void()> function_;
  static inline ucontext_t back_{};
};

TEST(PlainAddressesTest, OnAStackOfTheProgramsOwnNoStackIsKnown) {
  PlainAddresses addresses;
  addresses.Watch(nullptr);
  int on_threads_stack = 0;
  OnOwnStack::Run([&] {
    int on_this_stack = 0;
    EXPECT_FALSE(addresses.IsPlain(&on_this_stack));
    EXPECT_FALSE(addresses.IsPlain(&on_threads_stack));
    EXPECT_TRUE(addresses.IsPlain(&in_image));
  });
  EXPECT_TRUE(addresses.IsPlain(&on_threads_stack));
}

TEST(PlainAddressesTest, AWordTellsOfVendors) {
  PlainAddresses addresses;
  const void* word = nullptr;
  addresses.Watch(&word);
  const Mapped mapped;
  EXPECT_TRUE(addresses.IsPlain(mapped.at(0)));
  word = &constant;
  EXPECT_TRUE(addresses.MayHaveVendor());
  EXPECT_FALSE(addresses.IsPlain(mapped.at(0)));
}

TEST(LastLibraryTest, ItsWordChangesWithTheNextOne) {
  LastLibrary last;
  const void* const* word = last.Find();
  ASSERT_NE(word, nullptr);
  EXPECT_EQ(*word, nullptr);
  const std::string path = std::filesystem::absolute("tests/fixtures/libtest_kernels.so").string();
  void* const library = dlopen(path.c_str(), RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  EXPECT_NE(*word, nullptr);
  word = last.Find();
  ASSERT_NE(word, nullptr);
  EXPECT_EQ(*word, nullptr);
  // It is held, so its word stays.
  ASSERT_EQ(dlclose(library), 0);
  EXPECT_EQ(*word, nullptr);
  EXPECT_EQ(last.Find(), word);
}

}  // namespace
}  // namespace ferry::client
