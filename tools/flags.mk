# What the files of tools/ need.
LIBS_pantheon += -lm
