// A library that nothing of Ferry's knows: it is loaded with the program, and its constructor
// registers a handler of atexit.
#include <cstdlib>

namespace {

void (*called_at_exit)() = nullptr;

[[gnu::constructor]] void Register() {
  (void)std::atexit([] {
    if (called_at_exit != nullptr) {
      called_at_exit();
    }
  });
}

}  // namespace

extern "C" void CallFromLibrary(void (*call)()) { called_at_exit = call; }
