#include "transports/ofi/endpoint.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "transports/ofi/library.h"
#include "transports/ofi/provider.h"
#include "transports/ofi/slingshot_key.h"

namespace ferry::transport {
namespace {

bool ListensAt(int fd, std::span<const std::byte> name) {
  int listens = 0;
  socklen_t bytes = sizeof(listens);
  sockaddr_storage own{};
  socklen_t own_bytes = sizeof(own);
  return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes) == 0 && listens != 0 &&
         getsockname(fd, reinterpret_cast<sockaddr*>(&own), &own_bytes) == 0 &&
         own_bytes == name.size() && std::memcmp(&own, name.data(), name.size()) == 0;
}

// The Status of a libfabric call.
Status Check(int error, const char* what) {
  return error == 0 ? Status() : SetUpError(error, what);
}

Status OpenDomain(Endpoint* e) {
  fid_fabric* fabric = nullptr;
  FERRY_RETURN_IF_ERROR(
      Check(OpenedLibfabric().fabric(e->info->fabric_attr, &fabric, nullptr), "fi_fabric"));
  e->fabric.reset(fabric);
  fid_domain* domain = nullptr;
  const std::string key = KeyText(*e->info);
  const std::string what = key.empty() ? "fi_domain"
                                       : "the NIC " + std::string(e->info->domain_attr->name) +
                                             " refuses the job's key (" + key +
                                             ", of SLINGSHOT_VNIS and _SVC_IDS)";
  FERRY_RETURN_IF_ERROR(Check(fi_domain(fabric, e->info.get(), &domain, nullptr), what.c_str()));
  e->domain.reset(domain);
  fi_av_attr attributes{};
  attributes.type = FI_AV_TABLE;
  fid_av* addresses = nullptr;
  FERRY_RETURN_IF_ERROR(Check(fi_av_open(domain, &attributes, &addresses, nullptr), "fi_av_open"));
  e->addresses.reset(addresses);
  return Status();
}

StatusOr<FidPtr<fid_cq>> OpenQueue(const Endpoint& e, size_t entries, fi_wait_obj wait) {
  fi_cq_attr attributes{};
  attributes.size = entries;
  attributes.format = FI_CQ_FORMAT_MSG;
  attributes.wait_obj = wait;
  fid_cq* queue = nullptr;
  FERRY_RETURN_IF_ERROR(
      Check(fi_cq_open(e.domain.get(), &attributes, &queue, nullptr), "fi_cq_open"));
  return FidPtr<fid_cq>(queue);
}

// Opens the queue with a wait descriptor where the provider has one. `net` would start a thread for
// that, which takes every message away from the polling thread; its epoll instances are waited for
// instead.
Status OpenCompletionQueue(Endpoint* e, size_t entries) {
  e->waits_by_epoll = std::string_view(e->info->fabric_attr->prov_name) == "net";
  if (!e->waits_by_epoll) {
    StatusOr<FidPtr<fid_cq>> queue = OpenQueue(*e, entries, FI_WAIT_FD);
    if (queue.ok() && fi_control(&(*queue)->fid, FI_GETWAIT, &e->wait_fd) == 0) {
      e->completions = std::move(*queue);
      return Status();
    }
    e->wait_fd = -1;
  }
  StatusOr<FidPtr<fid_cq>> queue = OpenQueue(*e, entries, FI_WAIT_NONE);
  FERRY_RETURN_IF_ERROR(queue.status());
  e->completions = std::move(*queue);
  return Status();
}

// Depending on the provider, fi_endpoint or fi_enable takes the address.
int OpenAndEnable(Endpoint* e) {
  fid_ep* endpoint = nullptr;
  int error = fi_endpoint(e->domain.get(), e->info.get(), &endpoint, nullptr);
  if (error != 0) {
    return error;
  }
  e->endpoint.reset(endpoint);
  error = fi_ep_bind(endpoint, &e->addresses->fid, 0);
  if (error == 0) {
    error = fi_ep_bind(endpoint, &e->completions->fid, FI_TRANSMIT | FI_RECV);
  }
  return error == 0 ? fi_enable(endpoint) : error;
}

Status OpenListener(Endpoint* e, const TransportOptions& options) {
  const int error = OpenAndEnable(e);
  switch (-error) {
    case 0:
      return Status();
    case FI_EADDRINUSE:
      return Status(ErrorCode::kAlreadyExists,
                    "port " + std::to_string(options.port) + " of " + options.source_address +
                        " is in use; choose another port, or 0 for any.");
    case FI_EADDRNOTAVAIL:
      return Status(ErrorCode::kInvalidArgument,
                    "source address '" + options.source_address +
                        "' belongs to no interface of this machine; give one that does.");
    default:
      return SetUpError(
          error, "opening an endpoint of provider " + std::string(e->info->fabric_attr->prov_name));
  }
}

Status ReadName(Endpoint* e) {
  size_t bytes = 0;
  int error = fi_getname(&e->endpoint->fid, nullptr, &bytes);
  if (error != 0 && error != -FI_ETOOSMALL) {
    return SetUpError(error, "fi_getname");
  }
  e->name.resize(bytes);
  FERRY_RETURN_IF_ERROR(Check(fi_getname(&e->endpoint->fid, e->name.data(), &bytes), "fi_getname"));
  e->name.resize(bytes);
  return Status();
}

std::string VersionText(uint32_t version) {
  return std::to_string(FI_MAJOR(version)) + "." + std::to_string(FI_MINOR(version));
}

std::string PciAddress(const fi_info& info) {
  if (info.nic == nullptr || info.nic->bus_attr == nullptr ||
      info.nic->bus_attr->bus_type != FI_BUS_PCI) {
    return "";
  }
  const fi_pci_attr& pci = info.nic->bus_attr->attr.pci;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%04x:%02x:%02x.%x", pci.domain_id, pci.bus_id,
                pci.device_id, pci.function_id);
  return text.data();
}

void Describe(Endpoint* e, const TransportOptions& options) {
  const fi_fabric_attr& fabric = *e->info->fabric_attr;
  char text[256] = {};
  size_t bytes = sizeof(text);
  fi_av_straddr(e->addresses.get(), e->name.data(), text, &bytes);
  const std::string key = KeyText(*e->info);
  e->description = {
      .provider = fabric.prov_name,
      .fabric = fabric.name + (key.empty() ? "" : ", " + key),
      .domain = e->info->domain_attr->name,
      .version = "libfabric " + VersionText(OpenedLibfabric().version()) + ", provider " +
                 VersionText(fabric.prov_version),
      .address = std::string(text, strnlen(text, sizeof(text))),
      .pci_address = PciAddress(*e->info),
      .source_address = options.source_address,
  };
}

}  // namespace

// ---- SegmentLimit ----

bool LimitSegments(std::span<const std::byte> name) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    const std::string number = entry.path().filename();
    int fd = -1;
    std::from_chars(number.data(), number.data() + number.size(), fd);
    if (fd >= 0 && ListensAt(fd, name)) {
      // Accepted connections inherit the limit, and tell the other side.
      return setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &kMostSegmentBytes,
                        sizeof(kMostSegmentBytes)) == 0;
    }
  }
  return false;
}

// ---- EpollWatch ----

std::vector<int> EpollInstances() {
  std::vector<int> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    const std::filesystem::path target = std::filesystem::read_symlink(entry.path(), error);
    const std::string name = entry.path().filename();
    int fd = -1;
    std::from_chars(name.data(), name.data() + name.size(), fd);
    if (target == "anon_inode:[eventpoll]" && fd >= 0) {
      found.push_back(fd);
    }
  }
  return found;
}

UniqueFd WatchInstances(const std::vector<int>& instances, const std::vector<int>& except) {
  UniqueFd watch;
  for (const int fd : instances) {
    if (std::ranges::find(except, fd) != except.end()) {
      continue;
    }
    if (!watch.valid()) {
      watch.Reset(epoll_create1(EPOLL_CLOEXEC));
    }
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    epoll_ctl(watch.get(), EPOLL_CTL_ADD, fd, &event);
  }
  return watch;
}

// ---- Endpoint ----

bool Endpoint::TakesDmabufs() const {
  return ReachesDevices() && OpenedLibfabric().version() >= kDmabufVersion;
}

namespace {

StatusOr<std::unique_ptr<Endpoint>> Open(const TransportOptions& options, size_t queue_entries,
                                         InfoPtr info) {
  auto endpoint = std::make_unique<Endpoint>();
  endpoint->info = std::move(info);
  const std::vector<int> before = EpollInstances();
  FERRY_RETURN_IF_ERROR(OpenDomain(endpoint.get()));
  FERRY_RETURN_IF_ERROR(OpenCompletionQueue(endpoint.get(), queue_entries));
  FERRY_RETURN_IF_ERROR(OpenListener(endpoint.get(), options));
  if (endpoint->waits_by_epoll) {
    endpoint->watch = WatchInstances(EpollInstances(), before);
    endpoint->wait_fd = endpoint->watch.get();
  }
  FERRY_RETURN_IF_ERROR(ReadName(endpoint.get()));
  if (std::string_view(endpoint->info->fabric_attr->prov_name) == "sockets") {
    (void)LimitSegments(std::as_bytes(std::span(endpoint->name)));
  }
  Describe(endpoint.get(), options);
  return endpoint;
}

}  // namespace

StatusOr<std::unique_ptr<Endpoint>> OpenEndpoint(const TransportOptions& options,
                                                 const SlingshotWords& slingshot,
                                                 size_t queue_entries) {
  StatusOr<InfoPtr> info = ChooseProvider(options, slingshot);
  FERRY_RETURN_IF_ERROR(info.status());
  const bool reaches_devices = ((*info)->caps & FI_HMEM) != 0;
  StatusOr<std::unique_ptr<Endpoint>> opened = Open(options, queue_entries, std::move(*info));
  if (opened.ok() || !reaches_devices) {
    return opened;
  }
  TransportOptions without = options;
  without.reach_devices = false;
  info = ChooseProvider(without, slingshot);
  FERRY_RETURN_IF_ERROR(info.status());
  return Open(without, queue_entries, std::move(*info));
}

}  // namespace ferry::transport
