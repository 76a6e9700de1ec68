// The variables that must be in the environment before libfabric is opened (library.h): its
// libraries read most of them as they are loaded. This library never changes the environment: main
// sets those that are not set already; tests take them from environment.bzl.
#pragma once

#include <array>

namespace ferry::transport {

struct EnvironmentVariable {
  const char* name;
  const char* value;
  const char* reason;
};

inline constexpr std::array<EnvironmentVariable, 5> kRequiredEnvironment = {{
    {"IPATH_NO_BACKTRACE", "1",
     "Debian's libfabric loads libpsm_infinipath, whose constructor would otherwise take over the "
     "handlers of SIGSEGV, SIGBUS, SIGILL, SIGABRT, SIGINT and SIGTERM"},
    {"FI_OFI_RXM_BUFFER_SIZE", "20480",
     "keeps a message of 16 KiB and its header below ofi_rxm's rendezvous, which would double its "
     "latency, and let shorter messages behind it pass it"},
    {"FI_SOCKETS_PE_WAITTIME", "0", "the sockets provider's thread sleeps when idle, not spins"},
    {"FI_SOCKETS_CONN_TIMEOUT", "300", "a post to a dead link blocks 300 ms, not 15 s"},
    {"FI_SOCKETS_MAX_CONN_RETRY", "1", "the same"},
}};

}  // namespace ferry::transport
