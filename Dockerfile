# Builds tensorc on Debian 12, and runs its demo. The two commands of the README:
#   docker build --tag=tensorc .                                scripts/demo
#   docker run --rm tensorc                                     scripts/test
# Wheels for Python 3.11, and for 3.12 and later, in the folder wheels:
#   docker build --target=wheels --output=wheels .
FROM debian:12 AS build
WORKDIR /tensorc
# The packages by themselves, so that a changed source does not install them again.
COPY scripts/setup scripts/setup
RUN scripts/setup && rm -rf /var/lib/apt/lists/*
COPY . .
RUN scripts/demo
CMD ["scripts/test"]

FROM build AS make-wheels
COPY --from=python:3.12-bookworm /usr/local /usr/local
RUN ldconfig && scripts/wheel --python=/usr/bin/python3 --python=/usr/local/bin/python3.12

FROM scratch AS wheels
COPY --from=make-wheels /tensorc/build/wheels /

# What docker build makes without --target.
FROM build
