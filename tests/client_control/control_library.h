// libferry_control.so as libferry opens it.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "client/control/control_api.h"

namespace ferry {

inline constexpr char kControlLibrary[] = "client/control/libferry_control.so";

// Null, with a test failure, if it cannot be opened. It stays open: see control_api.h.
inline const ferry_control_api* OpenControlLibrary() {
  void* library = dlopen(kControlLibrary, RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(library, nullptr) << dlerror();
  if (library == nullptr) {
    return nullptr;
  }
  const auto entry =
      reinterpret_cast<ferry_control_entry_function>(dlsym(library, FERRY_CONTROL_ENTRY_NAME));
  EXPECT_NE(entry, nullptr) << dlerror();
  return entry == nullptr ? nullptr : entry();
}

}  // namespace ferry
