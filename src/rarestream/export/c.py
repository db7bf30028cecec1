OPTIONS=("name",); SUFFIXES=(".h",)
