// Names of the places of Debian's libraries on this kind of machine. Plain data: any thread.
#pragma once

#include <cstdint>
#include <string_view>

namespace ferry::tools {

// kMultiarch: the folder of libraries below /usr/lib (Debian's "multiarch tuple").
// kLoaderCacheFlags: what /etc/ld.so.cache says of libraries of this machine for the C library of
// version 2 (glibc, sysdeps/generic/ldconfig.h: FLAG_X8664_LIB64, FLAG_AARCH64_LIB64).
#if defined(__x86_64__)
inline constexpr std::string_view kMultiarch = "x86_64-linux-gnu";
inline constexpr int32_t kLoaderCacheFlags = 0x303;
#elif defined(__aarch64__)
inline constexpr std::string_view kMultiarch = "aarch64-linux-gnu";
inline constexpr int32_t kLoaderCacheFlags = 0xa03;
#else
#error "the multiarch tuple of this architecture, and its flags in the loader's cache"
#endif

}  // namespace ferry::tools
