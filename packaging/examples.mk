# Builds Ferry's examples, which examples.md describes. Copy this folder, by its name, to a place of
# your own, and run `make` there, or name some of them: `make stencil3d mpi_jacobi`. heat2d needs
# libpng's headers, and PKG_CONFIG_PATH must name the installation where the system does not know it.
# sycl_exchange is made by name only: it needs a compiler of SYCL's (SYCLCXX) and Level Zero.
CFLAGS = -O2
CXXFLAGS = -O2 -std=c++20
FC = gfortran
FFLAGS = -O2
PKG_CONFIG = pkg-config

ferry := $(shell $(PKG_CONFIG) --cflags --libs ferry)
mpi := $(shell $(PKG_CONFIG) --cflags --libs ferry-mpi) $(ferry)
mpi_fort = $(shell $(PKG_CONFIG) --cflags --libs ferry-mpi-fort)
shmem := $(filter-out -lmpi_abi,$(patsubst %/ferry/mpi,%/ferry/shmem,$(mpi))) -lferry_shmem

SYCLCXX = icpx
programs := $(filter-out common tutorial sycl_%,$(patsubst %/,%,$(wildcard */)))
sources = $(wildcard $@/*.c $@/*.cc $@/*.f90)
# Those of two words say in the first one which interface they use.
libraries = $(or $(if $(filter %.f90,$(sources)),$(mpi_fort)),$(if $(filter mpi_% partitioned_%,$@),$(mpi)),$(if $(filter shmem_%,$@),$(shmem)),$(ferry))
compile = $(if $(filter %.f90,$(sources)),$(FC) $(FFLAGS),$(if $(filter %.c,$(sources)),$(CC) $(CFLAGS),$(CXX) $(CXXFLAGS) -fopenmp))

all: $(programs)

# A program has its folder's name, and lies there. Some need what several share.
$(filter $(programs),$(shell grep -l examples/common */*.h */*.cc | sed 's|/.*||')): common/common.a
$(programs):
	$(compile) -I.. $(sources) $(filter %.a,$^) -o $@/$@ $(libraries) $(if $(filter heat2d,$@),-lpng)

sycl_exchange:
	$(SYCLCXX) -fsycl $(CXXFLAGS) $(sources) -o $@/$@ $(ferry) -lze_loader

common/common.a: $(patsubst %.cc,%.o,$(wildcard common/*.cc))
	$(AR) rcs $@ $^

common/%.o: common/%.cc
	$(CXX) $(CXXFLAGS) -I.. -c $< -o $@ $(filter -I%,$(mpi))

clean:
	rm -f common/*.o common/common.a $(foreach program,$(programs),$(program)/$(program))

.PHONY: all clean sycl_exchange $(programs)
