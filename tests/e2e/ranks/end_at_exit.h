// Has a program leave its job while the process ends, from code that was registered before it
// joined.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>

// end_at_exit_library.cc: its constructor has registered a handler, which calls `call`.
extern "C" void CallFromLibrary(void (*call)());

inline void (*end_of_object)() = nullptr;

// A static object of the program. It is made before main.
inline const struct EndingObject {
  ~EndingObject() {
    if (end_of_object != nullptr) {
      end_of_object();
    }
  }
} ending_object;

// `way`: handler, object, or library. Before the program joins its job. False: there is no such
// way.
inline bool EndAtExit(const char* way, void (*end)()) {
  if (std::strcmp(way, "handler") == 0) {
    return std::atexit(end) == 0;
  }
  if (std::strcmp(way, "library") == 0) {
    CallFromLibrary(end);
    return true;
  }
  end_of_object = end;
  return std::strcmp(way, "object") == 0;
}
