#include "tests/hostile/odd_descriptors.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <array>
#include <csignal>

namespace ferry::hostile {
namespace {

UniqueFd OddMemfd(const Attacker& attacker, Dice& dice) {
  unsigned flags = MFD_CLOEXEC | (dice.OneIn(4) ? 0 : MFD_ALLOW_SEALING);
  if (attacker.Dares("hugepages") && dice.OneIn(4)) {
    flags |= MFD_HUGETLB;
  }
  UniqueFd fd(static_cast<int>(syscall(SYS_memfd_create, "odd", flags)));
  // Sparse: the size costs nothing here.
  (void)!ftruncate(fd.get(), static_cast<off_t>(dice.Number() & ~(1ULL << 63)));
  constexpr int kSeals[] = {0,
                            F_SEAL_SHRINK,
                            F_SEAL_GROW,
                            F_SEAL_SHRINK | F_SEAL_GROW,
                            F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL,
                            F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE};
  (void)fcntl(fd.get(), F_ADD_SEALS, kSeals[dice.Below(std::size(kSeals))]);
  return fd;
}

// Closing it waits for what its peer never reads.
UniqueFd LingeringSocket() {
  const UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(listener.get(), 1) != 0 ||
      getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      connect(fd.get(), reinterpret_cast<sockaddr*>(&address), size) != 0) {
    return {};
  }
  static UniqueFd peer;  // the last one stays open
  peer.Reset(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  const std::array<char, 65'536> data{};
  while (send(fd.get(), data.data(), data.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
  }
  const linger second{1, 1};
  (void)setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &second, sizeof(second));
  return fd;
}

UniqueFd Opened(const char* path, int flags) { return UniqueFd(open(path, flags | O_CLOEXEC)); }

// One end of a pair whose other end is closed.
UniqueFd HalfOf(int (*make)(int (&)[2])) {
  int pair[2] = {-1, -1};
  (void)make(pair);
  close(pair[1]);
  return UniqueFd(pair[0]);
}

}  // namespace

UniqueFd OddDescriptor(const Attacker& attacker, Dice& dice) {
  switch (dice.Below(14)) {
    case 0:
      return HalfOf([](int(&pair)[2]) { return pipe2(pair, O_CLOEXEC); });
    case 1:
      return HalfOf(
          [](int(&pair)[2]) { return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair); });
    case 2:
      return UniqueFd(eventfd(static_cast<unsigned>(dice.Below(3)), EFD_CLOEXEC));
    case 3:
      return UniqueFd(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
    case 4:
      return UniqueFd(epoll_create1(EPOLL_CLOEXEC));
    case 5:
      return UniqueFd(inotify_init1(IN_CLOEXEC));
    case 6:
      return Opened("/dev/zero", O_RDWR);
    case 7:
      return Opened("/", O_DIRECTORY);
    case 8:
      return Opened("/proc/self/mem", O_RDWR);
    case 9:
      return Opened("/etc/passwd", O_PATH);
    case 10:
      return UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)));
    case 11:
      if (attacker.Dares("linger")) {
        return LingeringSocket();
      }
      [[fallthrough]];
    default:
      return OddMemfd(attacker, dice);
  }
}

}  // namespace ferry::hostile
