#include "tests/conformance/gpu_conformance_child.h"

#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "tests/conformance/gpu_backend_conformance.h"

extern char** environ;

namespace ferry::gpu {
namespace {

constexpr std::string_view kChildFlag = "--ferry-conformance-child";
constexpr int kChildSocket = 100;

// An IpcHandle without its descriptor.
struct HandleMessage {
  std::array<uint8_t, 64> opaque;
  uint64_t offset_bytes;
  uint64_t size_bytes;
  uint64_t allocation_id;
  int32_t device;
  int32_t has_fd;
};

union ControlBuffer {
  cmsghdr header;  // for its alignment
  char bytes[CMSG_SPACE(sizeof(int))];
};

Status SendHandle(int socket, const IpcHandle& handle) {
  HandleMessage message{handle.opaque,        handle.offset_bytes, handle.size_bytes,
                        handle.allocation_id, handle.device,       handle.fd.valid()};
  iovec part{&message, sizeof(message)};
  ControlBuffer control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (handle.fd.valid()) {
    header.msg_control = &control;
    header.msg_controllen = sizeof(control);
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    const int fd = handle.fd.get();
    std::memcpy(CMSG_DATA(rights), &fd, sizeof(fd));
  }
  return sendmsg(socket, &header, MSG_NOSIGNAL) == sizeof(message)
             ? Status()
             : StatusFromErrno(errno, "sendmsg of an IPC handle");
}

StatusOr<IpcHandle> ReceiveHandle(int socket) {
  HandleMessage message{};
  iovec part{&message, sizeof(message)};
  ControlBuffer control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = &control;
  header.msg_controllen = sizeof(control);
  if (recvmsg(socket, &header, MSG_CMSG_CLOEXEC) != sizeof(message)) {
    return StatusFromErrno(errno, "recvmsg of an IPC handle");
  }
  IpcHandle handle;
  handle.opaque = message.opaque;
  handle.offset_bytes = message.offset_bytes;
  handle.size_bytes = message.size_bytes;
  handle.allocation_id = message.allocation_id;
  handle.device = message.device;
  const cmsghdr* rights = CMSG_FIRSTHDR(&header);
  if (rights != nullptr) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(rights), sizeof(fd));
    handle.fd.Reset(fd);
  }
  return handle;
}

std::string ReadThenOverwrite(GpuBackend& backend, const IpcHandle& handle, void* pointer) {
  const uint64_t size = handle.size_bytes - handle.offset_bytes;
  StatusOr<Bytes> bytes = Download(backend, pointer, size);
  if (!bytes.ok()) {
    return bytes.status().ToString();
  }
  if (*bytes != Pattern(size, 1)) {
    return "the imported memory does not hold what the exporter wrote";
  }
  const Status written = Upload(backend, pointer, Pattern(size, 2));
  return written.ok() ? "" : written.ToString();
}

std::string CheckImportRules(GpuBackend& backend, const IpcHandle& handle, void* pointer) {
  const PointerInfo info = backend.Identify(pointer);
  if (info.kind != PointerKind::kDevice || info.size_bytes != handle.size_bytes ||
      static_cast<uint8_t*>(info.base) + handle.offset_bytes != pointer) {
    return "the import is not identified as the exported allocation";
  }
  if (info.direct != backend.GetDeviceInfo(0)->direct) {
    return "the import is not in reach of whom its device says";
  }
  if (backend.Free(pointer).code() != ErrorCode::kInvalidBuffer) {
    return "Free took an import";
  }
  if (backend.ExportIpc(pointer).status().code() != ErrorCode::kInvalidBuffer) {
    return "ExportIpc took an import";
  }
  const Status closed = backend.CloseIpc(pointer);
  if (!closed.ok()) {
    return closed.ToString();
  }
  if (backend.CloseIpc(pointer).code() != ErrorCode::kInvalidBuffer) {
    return "CloseIpc took the same import twice";
  }
  if (backend.Identify(pointer).kind != PointerKind::kUnknown) {
    return "the import is known after CloseIpc";
  }
  return "";
}

std::string WriteWord(GpuBackend& backend, void* pointer) {
  StatusOr<std::unique_ptr<Stream>> stream = backend.CreateStream(0);
  if (!stream.ok()) {
    return stream.status().ToString();
  }
  Status status = (*stream)->WriteValue64(static_cast<uint64_t*>(pointer), kWordFromChild);
  if (status.ok()) {
    status = (*stream)->Synchronize();
  }
  return status.ok() ? "" : status.ToString();
}

std::string Play(ChildRole role, std::string_view backend_name) {
  for (const ConformanceBackend& candidate : ConformanceBackends()) {
    if (candidate.name != backend_name) {
      continue;
    }
    StatusOr<std::unique_ptr<GpuBackend>> backend = candidate.create();
    if (!backend.ok()) {
      return backend.status().ToString();
    }
    StatusOr<IpcHandle> handle = ReceiveHandle(kChildSocket);
    if (!handle.ok()) {
      return handle.status().ToString();
    }
    StatusOr<void*> pointer = (*backend)->ImportIpc(*handle);
    if (!pointer.ok()) {
      return pointer.status().ToString();
    }
    switch (role) {
      case ChildRole::kReadThenOverwrite:
        return ReadThenOverwrite(**backend, *handle, *pointer);
      case ChildRole::kCheckImportRules:
        return CheckImportRules(**backend, *handle, *pointer);
      case ChildRole::kWriteWord:
        return WriteWord(**backend, *pointer);
    }
    return "unknown role";
  }
  return "no backend of that name";
}

}  // namespace

// Arguments: program, kChildFlag, backend name, role.
int RunConformanceChild(int argc, char** argv) {
  if (argc != 4 || argv[1] != kChildFlag) {
    return -1;
  }
  const std::string answer = Play(static_cast<ChildRole>(argv[3][0]), argv[2]);
  const std::string message = answer.empty() ? "ok" : answer;
  return send(kChildSocket, message.data(), message.size(), MSG_NOSIGNAL) > 0 ? 0 : 1;
}

ConformanceChild::ConformanceChild(pid_t pid, UniqueFd socket)
    : pid_(pid), socket_(std::move(socket)) {}

ConformanceChild::ConformanceChild(ConformanceChild&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), socket_(std::move(other.socket_)) {}

ConformanceChild::~ConformanceChild() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
}

StatusOr<ConformanceChild> ConformanceChild::Start(const std::string& backend_name,
                                                   ChildRole role) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return StatusFromErrno(errno, "socketpair");
  }
  UniqueFd ours(ends[0]);
  const UniqueFd theirs(ends[1]);
  std::string program = "/proc/self/exe";
  std::string flag(kChildFlag);
  std::string name = backend_name;
  std::string role_text(1, static_cast<char>(role));
  char* arguments[] = {program.data(), flag.data(), name.data(), role_text.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, theirs.get(), kChildSocket);
  pid_t pid = -1;
  const int failure = posix_spawn(&pid, program.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) {
    return StatusFromErrno(failure, "posix_spawn of this program");
  }
  return ConformanceChild(pid, std::move(ours));
}

Status ConformanceChild::Send(const IpcHandle& handle) { return SendHandle(socket_.get(), handle); }

StatusOr<std::string> ConformanceChild::Answer() {
  char text[1024];
  const ssize_t size = recv(socket_.get(), text, sizeof(text), 0);
  if (size <= 0) {
    return Status(ErrorCode::kPeerDied, "the child died without an answer");
  }
  const std::string answer(text, static_cast<size_t>(size));
  return answer == "ok" ? std::string() : answer;
}

}  // namespace ferry::gpu
