// A subscriber with kafkajs as a process of its own, to be killed; or a producer.
// usage: node subscriber.js produce|consume BOOTSTRAP TOPIC COUNT|GROUP
// Says "written COUNT", or "read PARTITION OFFSET" for each record, which is then committed.
const fs = require('fs')
const { Kafka, Partitioners, logLevel } = require('kafkajs')

const [verb, bootstrap, topic, argument] = process.argv.slice(2)
const { CLIENT_PROTOCOL: protocol = '', CLIENT_MECHANISM: mechanism = '' } = process.env

// The broker may ask who we are: what the environment says of that.
function security() {
  const { CLIENT_CA: ca, CLIENT_USER: username, CLIENT_PASSWORD: password } = process.env
  // Its own 10 s before the end of a session are more than those of tests last.
  const settings = { reauthenticationThreshold: 1500 }
  if (protocol.endsWith('SSL')) settings.ssl = { ca: [fs.readFileSync(ca)] }
  if (mechanism === 'OAUTHBEARER') {
    const token = async () => ({ value: process.env.CLIENT_TOKEN })
    settings.sasl = { mechanism: 'oauthbearer', oauthBearerProvider: token }
  } else if (mechanism) {
    settings.sasl = { mechanism: mechanism.toLowerCase(), username, password }
  }
  return settings
}

const kafka = new Kafka({
  ...security(),
  brokers: [bootstrap],
  logLevel: logLevel.NOTHING,
  retry: { initialRetryTime: 200, maxRetryTime: 1000, retries: 1000 },
})

async function produce() {
  const producer = kafka.producer({
    createPartitioner: Partitioners.DefaultPartitioner,
    idempotent: true,
    maxInFlightRequests: 1,
  })
  await producer.connect()
  const messages = [...Array(Number(argument)).keys()].map(number => ({ value: String(number) }))
  await producer.send({ topic, messages, acks: -1 })
  await producer.disconnect()
  console.log('written', argument)
}

async function consume() {
  // No heartbeat goes out while a fetch waits: it has to wait for less than the session's time-out.
  const consumer = kafka.consumer({
    groupId: argument, sessionTimeout: 3000, heartbeatInterval: 300, rebalanceTimeout: 3000,
    maxWaitTimeInMs: 500,
  })
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  await consumer.run({
    autoCommit: false,
    eachMessage: async ({ partition, message }) => {
      console.log('read', partition, message.offset)
      const offset = String(BigInt(message.offset) + 1n)
      await consumer.commitOffsets([{ topic, partition, offset }])
    },
  })
}

(verb === 'produce' ? produce() : consume()).catch(error => {
  console.error(error)
  process.exit(1)
})
