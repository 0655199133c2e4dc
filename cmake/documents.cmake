# What is read rather than run: the man page and the documents with the program, the samples' source
# with the headers.
if(TARGET stripepack)
  install(FILES docs/stripepack.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT tools)
  install(FILES README.md CHANGELOG.md CONTRIBUTING.md LICENSE
    DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT tools)
  install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT tools
    FILES_MATCHING PATTERN "*.md")
endif()
install(FILES samples/CMakeLists.txt samples/train.c samples/train.cc samples/train.py
  samples/train_loader.c samples/train_loader.cc
  samples/torch_ddp.py samples/torchvision_style.py
  DESTINATION ${CMAKE_INSTALL_DOCDIR}/samples COMPONENT development)
install(FILES samples/slurm/pack_array.sbatch samples/slurm/pack_srun.sbatch
  samples/slurm/train_ddp.sbatch samples/slurm/stage_and_train.sbatch
  DESTINATION ${CMAKE_INSTALL_DOCDIR}/samples/slurm COMPONENT development)
install(FILES samples/mpi/train_mpi.c
  DESTINATION ${CMAKE_INSTALL_DOCDIR}/samples/mpi COMPONENT development)
