// The key by which a job's processes may use a Slingshot NIC, for libfabric's provider `cxi`.
//
// A batch system gives each job step a number of its own, the VNI: the NIC delivers packets only
// between endpoints of one VNI. On each NIC of a node it makes a service, which lets the job's user
// use that VNI and some traffic classes. Both numbers are the key of a libfabric domain
// (fi_cxi(7), "Authorization Keys"). The provider would read the variables itself, but where
// something is wrong with them it falls back, without a word, to a service that jobs share.
//
// Source: fi_cxi(7) of libfabric 2.x; the bits of SLINGSHOT_TCS as Slurm's switch/hpe_slingshot and
// Flux's cray-slingshot have them. Pure.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/status.h"

namespace ferry::transport {

// The variables; each is empty if it is not set. The lists are comma-separated.
struct SlingshotWords {
  std::string vnis;             // SLINGSHOT_VNIS: "34,35", the first is of this job step
  std::string service_ids;      // SLINGSHOT_SVC_IDS: "5,6", of this node's NICs
  std::string devices;          // SLINGSHOT_DEVICES: "cxi0,cxi1", in the same order
  std::string traffic_classes;  // SLINGSHOT_TCS: a set of bits, "0xa"

  bool AreUnset() const { return vnis.empty() && service_ids.empty() && devices.empty(); }
};

// Takes them from an environment, by a function that finds a variable there
// (config::FindVariable).
SlingshotWords TakeSlingshotWords(
    const char* const* environment,
    std::optional<std::string_view> (*find)(const char* const* environment, std::string_view name));

struct SlingshotKey {
  std::string device;          // "cxi0"
  uint32_t service = 0;        // of that device
  uint16_t vni = 0;            // of the job
  uint32_t traffic_class = 0;  // FI_TC_...; FI_TC_UNSPEC: best effort, as the provider has it
};

// Returns the key for the NIC `device`, or for the first one that the job may use if `device` is
// empty; nothing if the batch system says nothing. kConfiguration, naming the variable: the words
// make no sense, or the job may not use that NIC.
StatusOr<std::optional<SlingshotKey>> ReadSlingshotKey(const SlingshotWords& words,
                                                       const std::string& device);

// Puts the key into `info`, as hints or to open a domain with. False: no memory.
bool PutKey(const SlingshotKey& key, fi_info* info);

// Returns the key that a domain opened with `info` has, as "VNI 34, service 5"; empty: none.
std::string KeyText(const fi_info& info);

}  // namespace ferry::transport
