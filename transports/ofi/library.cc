#include "transports/ofi/library.h"

#include <dlfcn.h>
#include <rdma/fi_errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <span>

#include "common/unique_fd.h"

namespace ferry::transport {
namespace {

constexpr char kFileName[] = "libfabric.so.1";

// The newest version of the function in the library, as the linker would bind it: structures only
// grow at their ends, and the library itself makes those that it reads.
template <typename Function>
Status Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr
             ? Status()
             : Status(ErrorCode::kVersionMismatch,
                      std::string(kFileName) + " has no " + name + ": another libfabric is needed");
}

constexpr uint8_t kPsm[] = {
#include "transports/ofi/stand_ins/psm.inc"
};
constexpr uint8_t kPsm2[] = {
#include "transports/ofi/stand_ins/psm2.inc"
};

// A library with the name of one that libfabric is linked with (stand_ins/stand_in.h): libfabric
// takes it in place of that one.
class StandIn {
 public:
  explicit StandIn(std::span<const uint8_t> bytes)
      : file_(memfd_create("ferry-stand-in", MFD_CLOEXEC)) {
    const auto size = static_cast<ssize_t>(bytes.size());
    if (file_.valid() && write(file_.get(), bytes.data(), bytes.size()) == size) {
      const std::string path = "/proc/self/fd/" + std::to_string(file_.get());
      library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    }
  }
  void Close() {
    if (library_ != nullptr) {
      dlclose(library_);
    }
  }

 private:
  const UniqueFd file_;      // open while others are loaded: a library is known by its path
  void* library_ = nullptr;  // null: it cannot be loaded here
};

void* OpenLibrary(Providers providers) {
  if (providers == Providers::kCommon) {
    StandIn psm(kPsm);
    StandIn psm2(kPsm2);
    void* const library = dlopen(kFileName, RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) {
      return library;
    }
    psm.Close();  // another libfabric may need more of them
    psm2.Close();
  }
  return dlopen(kFileName, RTLD_NOW | RTLD_LOCAL);
}

StatusOr<Libfabric> Load(Providers providers) {
  void* const library = OpenLibrary(providers);
  if (library == nullptr) {
    return Status(ErrorCode::kNotFound, std::string("the network's library cannot be opened: ") +
                                            dlerror() + " (Debian's package is libfabric1)");
  }
  Libfabric calls;
  FERRY_RETURN_IF_ERROR(Find(library, "fi_getinfo", &calls.getinfo));
  FERRY_RETURN_IF_ERROR(Find(library, "fi_freeinfo", &calls.freeinfo));
  FERRY_RETURN_IF_ERROR(Find(library, "fi_dupinfo", &calls.dupinfo));
  FERRY_RETURN_IF_ERROR(Find(library, "fi_fabric", &calls.fabric));
  FERRY_RETURN_IF_ERROR(Find(library, "fi_version", &calls.version));
  FERRY_RETURN_IF_ERROR(Find(library, "fi_strerror", &calls.strerror));
  return calls;
}

}  // namespace

// ---- Error ----

ErrorCode OperationError(int fabric_error) {
  switch (fabric_error) {
    case FI_ECANCELED:  // how tcp reports operations on a connection that broke
    case FI_ECONNABORTED:
    case FI_ECONNREFUSED:
    case FI_ECONNRESET:
    case FI_EHOSTDOWN:
    case FI_EHOSTUNREACH:
    case FI_EIO:
    case FI_ENETUNREACH:
    case FI_ENODEV:
    case FI_ENOENT:  // how sockets refuses a peer that it knows to be dead
    case FI_ENOTCONN:
    case FI_ESHUTDOWN:
    case FI_ETIMEDOUT:
      return ErrorCode::kNodeUnreachable;
    case FI_EACCES:
    case FI_EFAULT:
    case FI_EINVAL:
    case FI_EKEYREJECTED:
    case FI_EMSGSIZE:
    case FI_ENOKEY:
    case FI_EPERM:
      return ErrorCode::kInvalidBuffer;
    case FI_ETRUNC:
      return ErrorCode::kTruncated;
    case FI_ENOMEM:
      return ErrorCode::kOutOfMemory;
    default:
      return ErrorCode::kSystem;
  }
}

Status SetUpError(int fabric_error, const std::string& what) {
  const int error = std::abs(fabric_error);
  ErrorCode code = ErrorCode::kSystem;
  if (error == FI_ENOMEM) {
    code = ErrorCode::kOutOfMemory;
  } else if (error == FI_EADDRINUSE) {
    code = ErrorCode::kAlreadyExists;
  }
  return Status(code, what + ": " + OpenedLibfabric().strerror(error));
}

// ---- Library ----

StatusOr<const Libfabric*> OpenLibfabric(Providers providers) {
  static const auto& library =
      *new StatusOr<Libfabric>(Load(providers));  // also for destructors at exit
  FERRY_RETURN_IF_ERROR(library.status());
  return &*library;
}

const Libfabric& OpenedLibfabric() {
  const StatusOr<const Libfabric*> library = OpenLibfabric();
  if (!library.ok()) {
    std::fprintf(stderr, "ferry: %s\n", library.status().message().c_str());
    std::abort();  // no object of libfabric can exist
  }
  return **library;
}

}  // namespace ferry::transport
