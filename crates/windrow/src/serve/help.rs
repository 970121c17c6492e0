//! The help text of `windrow serve`.

pub const HELP: &str = "\
Serves a data folder to MongoDB's drivers and tools, until SIGTERM or SIGINT.

Usage: windrow serve --data DIR [OPTION…]

Options:
  --data DIR          the data folder; it is created if it does not exist
  -f, --config FILE   read options from a file in the form of mongod.conf; options of the command
                      line replace those of the file
  --listen ADDRESS    the address to listen on, HOST:PORT; can be repeated
                      [default: 127.0.0.1:27017]
  --bind-ip HOSTS     addresses or names to listen on, separated by commas, instead of --listen;
                      * or --bind-ip-all listens on all [default: 127.0.0.1]
  --bind-ip-all       listen on all addresses
  --port N            the port of --bind-ip [default: 27017]
  --ipv6              listen on IPv6 addresses of the names in --bind-ip, too
  --unix-socket-prefix DIR
                      the folder of the Unix domain socket mongodb-PORT.sock
                      [default: /tmp, if the server listens on the loopback address]
  --no-unix-socket    do not listen on a Unix domain socket
  --unix-socket-permissions MODE
                      the permissions of the Unix domain socket, in octal [default: 0700]
  --tls-mode MODE     disabled; allow or prefer: clients may use TLS; require: clients have to
                      [default: disabled]
  --tls-certificate-key-file FILE
                      a PEM file with the certificate of the server, its chain and its private key;
                      `windrow certificate` makes one to try with
  --tls-certificate-key-file-password PASSWORD
                      the password of the private key, if it is encrypted (PKCS #8 with AES)
  --tls-ca-file FILE  a PEM file with the authorities that sign certificates of clients; clients
                      need a certificate
  --tls-crl-file FILE
                      a PEM file with certificates that the authorities have revoked
  --tls-allow-connections-without-certificates
                      accept clients without a certificate although there is a --tls-ca-file
  --tls-disabled-protocols LIST
                      versions that are not accepted: TLS1_2 or TLS1_3. TLS1_0 and TLS1_1 never are
  --handshake-seconds-max N
                      how long a TLS handshake can take [default: 10]
  --connections-max N
                      how many clients can connect at a time [default: 10000]
  --operations-max N  how many reads and writes run at a time; others wait in the order in which
                      they came, at most for their maxTimeMS [default: no limit]
  --idle-seconds-max N
                      close connections without a message for so long [default: never]
  --auth              clients must log in, even while there are no users; the first user can then be
                      created from this machine
  --no-auth           clients need not log in, even if there are users
  --authorization A   the same as words of mongod's file: enabled, disabled
  --memory SIZE       total memory for caches, tails and index builds: bytes, 512MB, 2GiB
                      [default: a quarter of the machine's]
  --build-priority P  how much index builds yield to reads and writes: low, normal, high
                      [default: normal]
  --snapshot-seconds-max N
                      how long a query can read at a snapshot before it fails; the versions that a
                      snapshot needs occupy space [default: 600]
  --replica-set NAME  appear as a replica set with a single member, for clients that require one
  --store URL         keep the database in an object store: s3://BUCKET/PREFIX, gs:// or az://; the data
                      folder becomes a copy. Of several servers one is the primary
  --store-option NAME=VALUE
                      a setting of the object store, such as aws_endpoint=http://127.0.0.1:9000;
                      can be repeated. Credentials are read from the environment (AWS_ACCESS_KEY_ID …)
                      and the files of the AWS command line
  --cache-bytes SIZE  how much of the object store is kept in the data folder [default: 10GiB]
  --advertise ADDRESS
                      the address that clients connect to, HOST:PORT [default: that of --listen]
  --election-timeout N
                      take over if the primary was silent for so many seconds [default: 5]
  --data-set NAME     one of several data sets in the object store, each with a log and a primary of its
                      own; can be repeated. NAME=DATABASE,… says which databases it has, for example
                      logs=logs,metrics-*; others are divided by their names. The first set has admin
                      and the users. The servers appear as routers of MongoDB. More can be added
                      later, at the end
  --key-file FILE     the key with which servers with data sets log in at each other, the same on all
  --set-parameter NAME=VALUE
                      set a server parameter, as the command setParameter does; VALUE is true,
                      false or an integer; can be repeated. enableTestCommands=1 enables
                      configureFailPoint, for tests of applications
  --change-history-bytes-max SIZE
                      how much of the log is preserved for change streams once a stream was opened,
                      for example 1GB; streams that resume from an earlier point fail
                      [default: 256MiB]
  --enable-encryption do not start without a key for the data folder
  --encryption-key-file FILE
                      encrypt a new data folder, or open an encrypted one; windrow encryption
                      new-key makes such a file
  --metrics-listen ADDRESS
                      serve metrics for Prometheus at http://HOST:PORT/metrics
  --metrics-token-file FILE
                      readers of metrics must send the token in this file, as
                      Authorization: Bearer TOKEN; needed if ADDRESS is not a loopback address
  --web ADDRESS       serve a page for browsers at http://HOST:PORT, with TLS at https://HOST:PORT;
                      clients must log in if other machines can reach it [default: no page]
  --web-read-only     nothing can be changed by the page
  --otlp-endpoint URL send traces of commands to a collector of OpenTelemetry, such as
                      http://127.0.0.1:4318 [default: no traces]
  --otlp-sample-rate R
                      the part of the commands that is traced, from 0 to 1. A `traceparent` in the
                      comment of a command decides instead [default: 1]
  --slow-ms N         log commands that take longer, in milliseconds [default: 100]
  --slow-sample-rate R
                      the fraction of these that are logged, from 0 to 1 [default: 1]
  --profile LEVEL     store commands in system.profile: off, slowOp or all [default: off]
  --log-path FILE     write the log to a file [default: standard error]
  --log-append        append to an existing file, as is the default. `logAppend: false` in the
                      configuration file renames the existing file
  --log-rotate HOW    what SIGUSR1 and logRotate do with the file: rename it, or reopen it after
                      another program has renamed it [default: rename]
  --log-destination D
                      file, or syslog for the log of the system
  --syslog            the same as --log-destination syslog
  --syslog-facility F
                      the facility of lines in the log of the system [default: user]
  --audit-destination D
                      write an audit log of logins, refusals and changes of users, roles, collections
                      and indexes: to file, syslog or console
  --audit-format F    the format of an audit log in a file: only JSON
  --audit-path FILE   the file of the audit log, which only its owner can read
  --audit-filter FILTER
                      the events to write, as a filter: '{ atype: \"authCheck\" }' [default: all]
  --verbosity N       the parameter logLevel, from 0 to 5
  --quiet             the parameter quiet: do not log connections
  --time-stamp-format F
                      only iso8601-utc
  --pid-file FILE     write the process id to a file
  --time-zone-info DIR
                      only /usr/share/zoneinfo
  -h, --help          show this help

As soon as there is a user, clients must log in. Without users, every client that can connect can
read and write all data, so an address that other machines can reach needs --auth, a user or --no-auth.

The names of mongod's options are accepted, too, such as --dbpath, --tlsMode and --replSet.

Examples:
  windrow serve --data ./data
  windrow serve --config /etc/windrow.conf
  windrow serve --data /var/lib/windrow --listen 127.0.0.1:27018 --memory 2GiB
  mongosh mongodb://127.0.0.1:27017
";
